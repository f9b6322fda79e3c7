import {
  CHAIN_START,
  type ChainedEntry,
  type ChainLink,
  linkAfter,
} from "../../../domain/audit/audit-chain.ts";
import type { AuditEntry } from "../../../domain/audit/audit-entry.ts";
import { drawSalt, valuesDigest } from "../../../domain/audit/kept-values.ts";
import type { ChangedValues } from "../../../domain/customer/change.ts";
import type { ChainStart } from "../../audit/audit-store.ts";
import type { StatementCache } from "./statement-cache.ts";

/** The most ends that are kept: there may be any number of tenants. */
const CHAIN_ENDS_MAX = 1000;

/**
 * Appends a row to the chain of its tenant, in the transaction of the write. All writers take turns, so the last
 * row is the one that this one follows. It is kept until another connection has written: to look it up for each row
 * took a quarter of the processor time of a batch.
 *
 * @param values what to keep beside it; null for none
 * @param previous the number of the row before it of the same customer; 0 where there is none
 * @returns its number, which the customer's row keeps
 */
export function appendAudit(
  statements: StatementCache,
  write: Omit<AuditEntry, "timeMs" | "valuesDigest" | "values">,
  values: ChangedValues | null,
  previous: number,
): number {
  const kept = values === null ? null : { salt: drawSalt(), content: JSON.stringify(values) };
  const entry = { ...write, timeMs: Date.now(), valuesDigest: kept === null ? null : valuesDigest(kept) };
  const end = statements.chainEnds.get(entry.tenant) ?? chainEnd(statements, entry.tenant);
  const { number, hash } = linkAfter(end, entry);
  statements.run(
    "INSERT INTO audit VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, unhex(?), unhex(?), ?)",
    ...[entry.tenant, number, entry.timeMs, entry.client, entry.tokenPrefix, entry.requestId],
    ...[entry.operation, entry.customerId, entry.versionBefore, entry.versionAfter, entry.changed.join()],
    ...[Number(entry.isWithoutIfMatch), Number(entry.hasKey), entry.valuesDigest, hash, previous],
  );
  if (statements.chainEnds.size >= CHAIN_ENDS_MAX) statements.chainEnds.clear();
  statements.chainEnds.set(entry.tenant, { number, hash });
  if (kept !== null) {
    statements.run(
      "INSERT INTO audit_values VALUES (?, ?, unhex(?), ?)",
      ...[entry.tenant, number, kept.salt, kept.content],
    );
  }
  return number;
}

function chainEnd(statements: StatementCache, tenant: string): ChainLink {
  return (
    statements.get<ChainLink>(
      "SELECT number, lower(hex(hash)) AS hash FROM audit WHERE tenant = ? ORDER BY number DESC LIMIT 1",
      tenant,
    ) ?? chainStart(statements, tenant)
  );
}

export function chainStart(statements: Pick<StatementCache, "get">, tenant: string): ChainStart {
  return (
    statements.get<ChainStart>(
      "SELECT number, lower(hex(hash)) AS hash, time AS timeMs FROM audit_anchors WHERE tenant = ?",
      tenant,
    ) ?? { ...CHAIN_START, timeMs: null }
  );
}

/** The writes of retention, on the writer's connection inside its transaction. */
export const AUDIT_WRITES = { moveChainStart };

type StartMove = { readonly start: ChainLink; readonly last: ChainedEntry };

function moveChainStart(statements: StatementCache, { start, last }: StartMove): boolean {
  const { tenant, number, hash, timeMs } = last;
  if (chainStart(statements, tenant).number !== start.number) return false;
  statements.run(
    `INSERT INTO audit_anchors VALUES (?, ?, unhex(?), ?)
      ON CONFLICT DO UPDATE SET number = excluded.number, hash = excluded.hash, time = excluded.time`,
    ...[tenant, number, hash, timeMs],
  );
  // Retention leaves no row before the start. One that is there stays, so that `audit verify` finds it.
  statements.run(
    "DELETE FROM audit WHERE tenant = ? AND number > ? AND number <= ?",
    ...[tenant, start.number, number],
  );
  return true;
}

const COLUMNS = `a.tenant, a.number, a.time, a.client, a.token_prefix, a.request_id, a.operation, a.customer_id,
  a.version_before, a.version_after, a.changed, a.without_if_match, a.with_key,
  nullif(lower(hex(a.values_digest)), '') AS values_digest, lower(hex(a.hash)) AS hash`;

/** The rows of the trail as `a`, each with the values beside it. */
export const SELECT_AUDIT = `SELECT ${COLUMNS}, nullif(lower(hex(v.salt)), '') AS salt, v.content
  FROM audit a LEFT JOIN audit_values v ON v.tenant = a.tenant AND v.number = a.number`;

/** The same without the values. */
export const SELECT_AUDIT_ALONE = `SELECT ${COLUMNS} FROM audit a`;

/**
 * The number of a customer's last row: ?1 tenant, ?2 id. One that is stored names it. One that was removed has it in an
 * index, since a removal is its last row; null where retention has deleted it, and for one that never was.
 */
const LAST_CHANGE = `SELECT coalesce((SELECT last_change FROM customers WHERE tenant = ?1 AND id = ?2),
  (SELECT max(number) FROM audit INDEXED BY audit_removals WHERE tenant = ?1 AND customer_id = ?2 AND version_after IS NULL))`;

/**
 * The numbers of one customer's rows as `change`, the newest first, by their links. A damaged link ends them: none leads
 * to a newer row, so that there is no circle, nor to another customer's.
 *
 * ?1 tenant, ?2 id, ?3 the number of the row before which they begin, null for the newest, ?4 the maximum number of them.
 */
export const WITH_CHANGES = `WITH RECURSIVE change(number, previous) AS (
  SELECT number, previous FROM audit WHERE tenant = ?1 AND customer_id = ?2 AND number = CASE WHEN ?3 IS NULL
    THEN (${LAST_CHANGE}) ELSE (SELECT previous FROM audit WHERE tenant = ?1 AND customer_id = ?2 AND number = ?3 AND previous < ?3) END
  UNION ALL SELECT a.number, a.previous FROM change c JOIN audit a
    ON a.tenant = ?1 AND a.customer_id = ?2 AND a.number = c.previous AND a.number < c.number LIMIT ?4)`;

/** @returns the number of a customer's last row; 0 where none is kept */
export function lastChange(statements: StatementCache, tenant: string, id: string): number {
  return statements.get<{ number: number | null }>(`${LAST_CHANGE} AS number`, tenant, id)?.number ?? 0;
}
