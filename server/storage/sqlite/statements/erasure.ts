import { type Erased, PERSON_ERASE } from "../../person-store.ts";
import { appendAudit, lastChange } from "./audit-rows.ts";
import { readRowVersion } from "./customer-rows.ts";
import { forgetFields } from "./idempotency-keys.ts";
import type { StatementCache } from "./statement-cache.ts";

/** The writes of an erasure, on the writer's connection inside its transaction. */
export const ERASURE_WRITES = { eraseCustomer, eraseValues };

type Customer = { readonly tenant: string; readonly id: string };

function eraseCustomer(statements: StatementCache, customer: Customer): Omit<Erased, "values"> {
  const { tenant, id } = customer;
  const versionBefore = readRowVersion(statements, tenant, id);
  const wasStored = versionBefore !== null;
  const previous = lastChange(statements, tenant, id);
  const keptReplies = forgetFields(statements, customer);
  if (wasStored) statements.run("DELETE FROM customers WHERE tenant = ? AND id = ?", tenant, id);
  if (wasStored || !isErased(statements, tenant, id)) {
    const write = { ...PERSON_ERASE, tenant, customerId: id, versionBefore, versionAfter: null };
    appendAudit(statements, { ...write, changed: [], hasKey: false }, null, previous);
  }
  return { wasStored, keptReplies };
}

export function isErased(statements: Pick<StatementCache, "get">, tenant: string, id: string): boolean {
  const sql = "SELECT 1 FROM audit WHERE tenant = ? AND customer_id = ? AND operation = 'erase' LIMIT 1";
  return statements.get(sql, tenant, id) !== null;
}

type Values = { readonly tenant: string; readonly numbers: readonly number[] };

/** @returns how many were deleted: those beside the rows of these numbers, of a customer who was erased */
function eraseValues(statements: StatementCache, { tenant, numbers }: Values): number {
  const sql = "DELETE FROM audit_values WHERE tenant = ? AND number IN (SELECT value FROM json_each(?))";
  return statements.run(sql, tenant, JSON.stringify(numbers));
}
