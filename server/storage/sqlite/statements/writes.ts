import { AUDIT_WRITES } from "./audit-rows.ts";
import { CUSTOMER_WRITES } from "./customer-writes.ts";
import { ERASURE_WRITES } from "./erasure.ts";
import { KEY_WRITES } from "./idempotency-keys.ts";
import type { StatementCache } from "./statement-cache.ts";
import { TOKEN_WRITES } from "./token-writes.ts";
import { COUNT_WRITES } from "./write-counts.ts";

/**
 * Every write that there is, by name. Input and outcome are
 * JSON, so that they can cross to another thread as text.
 */
const WRITES = {
  ...CUSTOMER_WRITES,
  ...KEY_WRITES,
  ...TOKEN_WRITES,
  ...COUNT_WRITES,
  ...AUDIT_WRITES,
  ...ERASURE_WRITES,
};

type Writes = typeof WRITES;
export type WriteName = keyof Writes;
export type WriteInput<Name extends WriteName> = Parameters<Writes[Name]>[1];
export type WriteResult<Name extends WriteName> = ReturnType<Writes[Name]>;
/** A write as it is sent to another thread. */
export type WriteRequest = { readonly name: WriteName; readonly input: WriteInput<WriteName> };

/** Whether a write changes customers alone, and so no token. */
export function isOfCustomers(name: WriteName): boolean {
  return name in CUSTOMER_WRITES;
}

/** @returns what runs a write on the writer's connection, inside its transaction */
export function jobOf(statements: StatementCache, { name, input }: WriteRequest): () => unknown {
  return () => applyWrite(statements, name, input);
}

function applyWrite<Name extends WriteName>(
  statements: StatementCache,
  name: Name,
  input: WriteInput<Name>,
): WriteResult<Name> {
  const apply = WRITES[name] as (statements: StatementCache, input: WriteInput<Name>) => WriteResult<Name>;
  return apply(statements, input);
}
