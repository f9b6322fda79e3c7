import { type Erased, PERSON_ERASE, VALUES_PAGE } from "../../person-store.ts";
import { appendAudit } from "./audit-rows.ts";
import { readRowVersion } from "./customer-rows.ts";
import { forgetFields } from "./idempotency-keys.ts";
import type { StatementCache } from "./statement-cache.ts";

/** The writes of an erasure, on the writer's connection inside its transaction. */
export const ERASURE_WRITES = { eraseCustomer, eraseValues };

type Customer = { readonly tenant: string; readonly id: string };

function eraseCustomer(statements: StatementCache, customer: Customer): Erased {
  const { tenant, id } = customer;
  const versionBefore = readRowVersion(statements, tenant, id);
  const wasStored = versionBefore !== null;
  const keptReplies = forgetFields(statements, customer);
  if (wasStored) statements.run("DELETE FROM customers WHERE tenant = ? AND id = ?", tenant, id);
  if (wasStored || !isErased(statements, tenant, id)) {
    const write = { ...PERSON_ERASE, tenant, customerId: id, versionBefore, versionAfter: null };
    appendAudit(statements, { ...write, changed: [], hasKey: false }, null);
  }
  return { wasStored, keptReplies, values: eraseValues(statements, customer) };
}

export function isErased(statements: Pick<StatementCache, "get">, tenant: string, id: string): boolean {
  const sql = "SELECT 1 FROM audit WHERE tenant = ? AND customer_id = ? AND operation = 'erase' LIMIT 1";
  return statements.get(sql, tenant, id) !== null;
}

/** @returns how many were deleted, at most {@link VALUES_PAGE} */
function eraseValues(statements: StatementCache, { tenant, id }: Customer): number {
  return statements.run(
    `DELETE FROM audit_values WHERE tenant = ?1 AND number IN (
      SELECT v.number FROM audit a JOIN audit_values v ON v.tenant = a.tenant AND v.number = a.number
      WHERE a.tenant = ?1 AND a.customer_id = ?2 LIMIT ?3)`,
    ...[tenant, id, VALUES_PAGE],
  );
}
