import { type Erased, PERSON_ERASE, VALUES_PAGE } from "../../person-store.ts";
import { appendAudit, lastChange, WITH_CHANGES } from "./audit-rows.ts";
import { readRowVersion } from "./customer-rows.ts";
import { forgetFields } from "./idempotency-keys.ts";
import type { StatementCache } from "./statement-cache.ts";

/** The writes of an erasure, on the writer's connection inside its transaction. */
export const ERASURE_WRITES = { eraseCustomer, eraseValues };

type Customer = { readonly tenant: string; readonly id: string };

function eraseCustomer(statements: StatementCache, customer: Customer): Erased & ValuesPage {
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
  return { wasStored, keptReplies, ...eraseValues(statements, { ...customer, before: null }) };
}

export function isErased(statements: Pick<StatementCache, "get">, tenant: string, id: string): boolean {
  const sql = "SELECT 1 FROM audit WHERE tenant = ? AND customer_id = ? AND operation = 'erase' LIMIT 1";
  return statements.get(sql, tenant, id) !== null;
}

type ValuesPage = {
  readonly values: number;
  /** The number of the last row that was looked at, where older ones may follow; else null. */
  readonly last: number | null;
};

/** Deletes the values beside a page of a customer's rows. @param before {@link ValuesPage.last} of the page before */
function eraseValues(
  statements: StatementCache,
  { tenant, id, before }: Customer & { readonly before: number | null },
): ValuesPage {
  const page = [tenant, id, before, VALUES_PAGE];
  const values = statements.run(
    `${WITH_CHANGES} DELETE FROM audit_values WHERE tenant = ?1 AND number IN (SELECT number FROM change)`,
    ...page,
  );
  const rows = statements.get<{ n: number; last: number }>(
    `${WITH_CHANGES} SELECT count(*) AS n, min(number) AS last FROM change`,
    ...page,
  );
  return { values, last: rows?.n === VALUES_PAGE ? rows.last : null };
}
