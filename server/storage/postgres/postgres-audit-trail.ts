import { CHAIN_START, type ChainedEntry, type ChainLink } from "../../domain/audit/audit-chain.ts";
import { AUDIT_TENANTS, auditEntry, chainedEntry } from "../audit-row.ts";
import type {
  AuditFindings,
  AuditQuery,
  AuditSearch,
  AuditStore,
  ChainStart,
  CustomerHistory,
  HistoryQuery,
} from "../audit-store.ts";
import { sealRows } from "./audit-sealing.ts";
import type { Lanes } from "./connection/lanes.ts";
import {
  AUDIT_ROWS_TEXT,
  auditPartText,
  auditSearchText,
  CHAIN_START_TEXT,
  DELETE_ROWS_TEXT,
  HAD_CUSTOMERS_TEXT,
  historyText,
  IS_ERASED_TEXT,
  MOVE_START_TEXT,
  type PostgresAuditRow,
} from "./rows/audit-sql.ts";

/** The audit trail in PostgreSQL, on a connection for what is slow. Rows are appended by rows/customer-sql.ts. */
export class PostgresAuditTrail implements AuditStore {
  readonly isSealedLater = true;
  readonly #lanes: Lanes;

  constructor(lanes: Lanes) {
    this.#lanes = lanes;
  }

  seal(isWaiting = false): Promise<number> {
    // Done again it finds fewer rows without a place.
    return this.#lanes.transact((transaction) => sealRows(transaction, isWaiting));
  }

  async tenants(): Promise<string[]> {
    const rows = await this.#lanes.run<{ tenant: string }>(AUDIT_TENANTS, [], true);
    return rows.map(({ tenant }) => tenant);
  }

  async chainStart(tenant: string): Promise<ChainStart> {
    type Row = { readonly number: string; readonly hash: string; readonly time: string };
    const [row] = await this.#lanes.run<Row>(CHAIN_START_TEXT, [tenant], true);
    if (row === undefined) return { ...CHAIN_START, timeMs: null };
    return { number: Number(row.number), hash: row.hash, timeMs: Number(row.time) };
  }

  moveStart(start: ChainLink, { tenant, number, hash, timeMs }: ChainedEntry): Promise<boolean> {
    const anchor = [tenant, String(number), hash, String(timeMs), String(start.number)];
    // Done again it finds the start moved.
    return this.#lanes.transact(async (transaction) => {
      if ((await transaction.run(MOVE_START_TEXT, anchor)).length === 0) return false;
      await transaction.run(DELETE_ROWS_TEXT, [tenant, String(number), String(start.number)]);
      return true;
    });
  }

  async hadCustomers(tenant: string): Promise<boolean> {
    return (await this.#lanes.run(HAD_CUSTOMERS_TEXT, [tenant], true)).length > 0;
  }

  async isErased(tenant: string, customerId: string): Promise<boolean> {
    return (await this.#lanes.run(IS_ERASED_TEXT, [tenant, customerId], true)).length > 0;
  }

  /** The server enforces the foreign key for every writer. */
  countStrayValues(): number {
    return 0;
  }

  async history(query: HistoryQuery): Promise<CustomerHistory> {
    const { tenant, customerId, before, limit } = query;
    const isUnsealed = before?.startsWith(UNSEALED) === true;
    const text = historyText(before === null ? "newest" : isUnsealed ? "before id" : "before number", query);
    const start = before === null ? [] : [isUnsealed ? before.slice(UNSEALED.length) : before];
    const params = [tenant, customerId, String(limit + 1), ...start];
    const rows = await this.#lanes.readPage<PostgresAuditRow>(text, params);
    const last = rows.length > limit ? rows[limit - 1] : undefined;
    return {
      items: rows.slice(0, limit).map(auditEntry),
      last: last === undefined ? null : positionOf(last),
    };
  }

  async rows({ tenant, after, limit }: AuditQuery): Promise<ChainedEntry[]> {
    const params = [tenant, after === null ? null : String(after), String(limit)];
    const rows = await this.#lanes.run<PostgresAuditRow>(AUDIT_ROWS_TEXT, params, true);
    return rows.map(chainedEntry);
  }

  async search({
    tenant,
    customerId,
    client,
    fromMs,
    untilMs,
    after,
    limit,
  }: AuditSearch): Promise<AuditFindings> {
    const one = customerId === null ? [] : [customerId];
    const scope = { isOneCustomer: one.length > 0 };
    const part = [tenant, String(after), String(limit), ...one];
    const [{ last } = { last: null }] = await this.#lanes.run<{ last: string | null }>(
      auditPartText(scope),
      part,
      true,
    );
    if (last === null) return { rows: [], last: null };
    const params = [tenant, String(after), last, String(fromMs), String(untilMs), client, ...one];
    const rows = await this.#lanes.run<PostgresAuditRow>(auditSearchText(scope), params, true);
    return { rows: rows.map(chainedEntry), last: Number(last) };
  }
}

/** Before the id of a row that has no number yet. */
const UNSEALED = "id ";

/** Its number, which a copy keeps, where it has one: then a cursor is good after a move to another engine. */
function positionOf({ number, id }: PostgresAuditRow): string {
  return number ?? `${UNSEALED}${id}`;
}
