import { CHAIN_START, type ChainedEntry, type ChainLink } from "../../domain/audit/audit-chain.ts";
import type { AuditQuery, AuditStore } from "../audit-store.ts";
import { sealRows } from "./audit-sealing.ts";
import type { Lanes } from "./connection/lanes.ts";
import { persist } from "./connection/persistence.ts";
import {
  AUDIT_TENANTS_TEXT,
  auditRowsText,
  CHAIN_START_TEXT,
  chainedEntry,
  type PostgresAuditRow,
} from "./rows/audit-sql.ts";

/** The audit trail in PostgreSQL, on a connection for what is slow. Rows are appended by rows/customer-sql.ts. */
export class PostgresAuditTrail implements AuditStore {
  readonly #lanes: Lanes;

  constructor(lanes: Lanes) {
    this.#lanes = lanes;
  }

  seal(): Promise<number> {
    const { slow, limits, onRetry } = this.#lanes;
    // Done again it finds fewer rows without a place.
    return persist((giveUpAt) => slow.use((lane) => lane.transact(sealRows), giveUpAt), {
      isRepeatable: true,
      giveUpMs: limits.giveUpMs,
      onRetry,
    });
  }

  async tenants(): Promise<string[]> {
    const rows = await this.#lanes.run<{ tenant: string }>(AUDIT_TENANTS_TEXT, [], true);
    return rows.map(({ tenant }) => tenant);
  }

  async chainStart(tenant: string): Promise<ChainLink> {
    const [row] = await this.#lanes.run<{ number: string; hash: string }>(CHAIN_START_TEXT, [tenant], true);
    return row === undefined ? CHAIN_START : { number: Number(row.number), hash: row.hash };
  }

  async rows({ tenant, customerId, after, limit }: AuditQuery): Promise<ChainedEntry[]> {
    const one = customerId === null ? [] : [customerId];
    const params = [tenant, String(after), String(limit), ...one];
    const rows = await this.#lanes.run<PostgresAuditRow>(auditRowsText(one.length > 0), params, true);
    return rows.map(chainedEntry);
  }
}
