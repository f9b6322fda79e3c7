import { boundVersions, type KnownVersion, type WriteCount } from "../../domain/rollout/write-count.ts";
import { type WriteCountRow, writeCountOf } from "../write-count-row.ts";
import {
  COUNTS_MAX,
  COUNTS_PAGE,
  type CountKey,
  countKeyParams,
  type WriteCountStore,
} from "../write-count-store.ts";
import type { Lanes } from "./connection/lanes.ts";
import { columnsOf } from "./rows/array-literal.ts";
import { ADD_COUNTS_TEXT, countParams, KNOWN_VERSIONS_TEXT } from "./rows/write-count-sql.ts";

/** Counts of writes in PostgreSQL, on a connection for what is slow: no customer's write waits for them. */
export class PostgresWriteCounts implements WriteCountStore {
  readonly #lanes: Lanes;

  constructor(lanes: Lanes) {
    this.#lanes = lanes;
  }

  /** Services that add new versions at the same moment may pass the bound of versions by those. */
  async add(counts: readonly WriteCount[]): Promise<void> {
    if (counts.length === 0) return;
    const clientDays = columnsOf(counts.map(({ tenant, client, day }) => [tenant, client, day]));
    const known = await this.#lanes.run<KnownVersion>(KNOWN_VERSIONS_TEXT, clientDays, true);
    const rows = boundVersions(counts, known).map(countParams);
    await this.#lanes.run(ADD_COUNTS_TEXT, columnsOf(rows), true);
  }

  async page(fromDay: string, after: CountKey | null): Promise<WriteCount[]> {
    const text = `SELECT * FROM write_counts WHERE (tenant, client, day, client_version, method)
        > ($1::text, $2::text, $3::text, $4::text, $5::text) AND day >= $6::text
      ORDER BY tenant, client, day, client_version, method LIMIT $7::int`;
    const params = [...countKeyParams(after), fromDay, String(COUNTS_PAGE)];
    const rows = await this.#lanes.run<WriteCountRow>(text, params, true);
    return rows.map(writeCountOf);
  }

  async purge(beforeDay: string): Promise<number> {
    const text = `DELETE FROM write_counts WHERE (tenant, client, day, client_version, method) IN
        (SELECT tenant, client, day, client_version, method FROM write_counts WHERE day < $1::text
          ORDER BY day LIMIT $2::int FOR UPDATE SKIP LOCKED)
      RETURNING 1`;
    return (await this.#lanes.run(text, [beforeDay, String(COUNTS_MAX)], true)).length;
  }
}
