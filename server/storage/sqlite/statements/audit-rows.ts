import {
  CHAIN_START,
  type ChainedEntry,
  type ChainLink,
  linkAfter,
} from "../../../domain/audit/audit-chain.ts";
import type { AuditEntry } from "../../../domain/audit/audit-entry.ts";
import type { ChainStart } from "../../audit-store.ts";
import type { StatementCache } from "./statement-cache.ts";

/**
 * Appends a row to the chain of its tenant, in the transaction of the write. All
 * writers take turns, so the last row is the one that this one follows.
 */
export function appendAudit(statements: StatementCache, write: Omit<AuditEntry, "timeMs">): void {
  const entry = { ...write, timeMs: Date.now() };
  const { number, hash } = linkAfter(chainEnd(statements, entry.tenant), entry);
  statements.run(
    "INSERT INTO audit VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, unhex(?))",
    ...[entry.tenant, number, entry.timeMs, entry.client, entry.tokenPrefix, entry.requestId],
    ...[entry.operation, entry.customerId, entry.versionBefore, entry.versionAfter, entry.changed.join()],
    ...[Number(entry.isWithoutIfMatch), Number(entry.hasKey), hash],
  );
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
  statements.run("DELETE FROM audit WHERE tenant = ? AND number <= ?", tenant, number);
  return true;
}

export const AUDIT_COLUMNS = `tenant, number, time, client, token_prefix, request_id, operation, customer_id, version_before,
  version_after, changed, without_if_match, with_key, lower(hex(hash)) AS hash`;
