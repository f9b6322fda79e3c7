import { boundVersions, type KnownVersion, type WriteCount } from "../../domain/rollout/write-count.ts";
import { WRITE_COUNT_COLUMNS } from "../write-counts/write-count-columns.ts";
import {
  COUNTS_MAX,
  COUNTS_PAGE,
  countKeyParams,
  type WriteCountStore,
} from "../write-counts/write-count-store.ts";
import type { Lanes } from "./connection/lanes.ts";
import { columnsOf } from "./rows/array-literal.ts";

/** Counts of writes in PostgreSQL, on a connection for what is slow: no customer's write waits for them. */
export function postgresWriteCounts(lanes: Lanes) {
  return {
    /** Services that add new versions at the same moment may pass the bound of versions by those. */
    async add(counts) {
      if (counts.length === 0) return;
      const clientDays = columnsOf(counts.map(({ tenant, client, day }) => [tenant, client, day]));
      const known = await lanes.run<KnownVersion>(
        `SELECT DISTINCT w.tenant, w.client, w.day, w.client_version AS version
          FROM (SELECT DISTINCT * FROM unnest($1::text[], $2::text[], $3::text[]) AS u(tenant, client, day)) AS i
          JOIN write_counts w ON w.tenant = i.tenant AND w.client = i.client AND w.day = i.day`,
        clientDays,
      );
      const rows = boundVersions(counts, known).map(countParams);
      await lanes.run(ADD_COUNTS_TEXT, columnsOf(rows));
    },

    page(fromDay, after) {
      const text = `SELECT ${WRITE_COUNT_COLUMNS} FROM write_counts WHERE (tenant, client, day, client_version, method)
          > ($1::text, $2::text, $3::text, $4::text, $5::text) AND day >= $6::text
        ORDER BY tenant, client, day, client_version, method LIMIT $7::int`;
      const params = [...countKeyParams(after), fromDay, String(COUNTS_PAGE)];
      return lanes.run<WriteCount>(text, params);
    },

    async purge(beforeDay) {
      const text = `DELETE FROM write_counts WHERE (tenant, client, day, client_version, method) IN
          (SELECT tenant, client, day, client_version, method FROM write_counts WHERE day < $1::text
            ORDER BY day LIMIT $2::int FOR UPDATE SKIP LOCKED)
        RETURNING 1`;
      return (await lanes.run(text, [beforeDay, String(COUNTS_MAX)])).length;
    },
  } satisfies WriteCountStore;
}

/** A parameter for each column. Sorted, so that two services that add the same rows do not lock each other. */
const ADD_COUNTS_TEXT = `INSERT INTO write_counts AS w
    (tenant, client, day, client_version, method, with_if_match, allowed, refused, first_at, last_with_at, first_without_at, last_without_at)
  SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::bigint[], $8::bigint[],
      $9::bigint[], $10::bigint[], $11::bigint[], $12::bigint[])
    AS i(tenant, client, day, client_version, method, with_if_match, allowed, refused, first_at, last_with_at, first_without_at, last_without_at)
  ORDER BY tenant COLLATE "C", client COLLATE "C", day COLLATE "C", client_version COLLATE "C", method COLLATE "C"
  ON CONFLICT (tenant, client, day, client_version, method) DO UPDATE SET
    with_if_match = w.with_if_match + EXCLUDED.with_if_match,
    allowed = w.allowed + EXCLUDED.allowed,
    refused = w.refused + EXCLUDED.refused,
    first_at = least(w.first_at, EXCLUDED.first_at),
    last_with_at = greatest(w.last_with_at, EXCLUDED.last_with_at),
    first_without_at = least(w.first_without_at, EXCLUDED.first_without_at),
    last_without_at = greatest(w.last_without_at, EXCLUDED.last_without_at)`;

/** The parameters of {@link ADD_COUNTS_TEXT}, before they become columns. */
function countParams(count: WriteCount): (string | null)[] {
  const time = (timeMs: number | null): string | null => (timeMs === null ? null : String(timeMs));
  return [
    ...[count.tenant, count.client, count.day, count.version, count.method],
    ...[String(count.withIfMatch), String(count.allowed), String(count.refused), String(count.firstAtMs)],
    ...[time(count.lastWithAtMs), time(count.firstWithoutAtMs), time(count.lastWithoutAtMs)],
  ];
}
