import {
  type CreateOutcome,
  IDEMPOTENCY_KEY_MS,
  type IdempotencyKey,
  PURGED_KEYS_MAX,
  type RemoveOutcome,
  type WriteOutcome,
} from "../../customers/customer-store.ts";
import type { StatementCache } from "./statement-cache.ts";

/** A write of its own, so that nobody's request pays for yesterday's keys. */
export const KEY_WRITES = { purgeKeys };

type Customer = { readonly tenant: string; readonly id: string };

type KeptKey = {
  /** 1 or 0. */
  readonly is_same_request: number;
  readonly outcome: string;
};

/**
 * Runs a write once for its key, inside the transaction: an accepted one is remembered with
 * its outcome, and answered from there when it is repeated. A refused one is forgotten.
 *
 * @param customer whose fields the outcome holds; null where it holds none
 */
export function once<Outcome extends CreateOutcome | WriteOutcome | RemoveOutcome>(
  statements: StatementCache,
  key: IdempotencyKey | null,
  customer: Customer | null,
  write: () => Outcome,
): Outcome | { kind: "key-reused" } {
  if (key === null) return write();
  const kept = statements.get<KeptKey>(
    "SELECT digest = unhex(?) AS is_same_request, outcome FROM idempotency_keys WHERE token_id = ? AND key = ? AND expires_at > ?",
    ...[key.digest, key.tokenId, key.key, key.nowMs],
  );
  if (kept !== null) {
    if (kept.is_same_request === 0) return { kind: "key-reused" };
    return { ...(JSON.parse(kept.outcome) as Outcome), isReplayed: true };
  }
  const outcome = write();
  if (isAccepted(outcome)) keep(statements, key, customer, outcome);
  return outcome;
}

function isAccepted({ kind }: CreateOutcome | WriteOutcome | RemoveOutcome): boolean {
  return kind === "created" || kind === "applied" || kind === "removed";
}

/** An expired key may still be there: it is replaced. */
function keep(
  statements: StatementCache,
  { tokenId, key, digest, nowMs }: IdempotencyKey,
  customer: Customer | null,
  outcome: object,
): void {
  statements.run(
    "INSERT OR REPLACE INTO idempotency_keys VALUES (?, ?, unhex(?), ?, ?, ?, ?)",
    ...[tokenId, key, digest, JSON.stringify(outcome), nowMs + IDEMPOTENCY_KEY_MS],
    ...[customer?.tenant ?? null, customer?.id ?? null],
  );
}

/**
 * Takes the fields of a customer out of every outcome that
 * is kept: with its row goes all that was kept of it.
 *
 * @returns of how many outcomes
 */
export function forgetFields(statements: StatementCache, { tenant, id }: Customer): number {
  return statements.run(
    "UPDATE idempotency_keys SET outcome = json_set(outcome, '$.fields', NULL), tenant = NULL, customer_id = NULL WHERE tenant = ? AND customer_id = ?",
    ...[tenant, id],
  );
}

/** @returns how many expired keys were deleted */
function purgeKeys(statements: StatementCache, { nowMs }: { readonly nowMs: number }): number {
  return statements.run(
    "DELETE FROM idempotency_keys WHERE (token_id, key) IN (SELECT token_id, key FROM idempotency_keys WHERE expires_at <= ? ORDER BY expires_at LIMIT ?)",
    ...[nowMs, PURGED_KEYS_MAX],
  );
}
