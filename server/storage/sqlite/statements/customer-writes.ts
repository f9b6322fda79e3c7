import type { CustomerChanges, NewCustomer } from "../../../domain/customer.ts";
import { drawCustomerId } from "../../../domain/customer-id.ts";
import { foldEmail } from "../../../domain/email.ts";
import { drawRowVersion, type RowVersion } from "../../../domain/entity-tag.ts";
import type { Projection } from "../../../domain/projection.ts";
import type {
  CreateOutcome,
  IdempotencyKey,
  RemoveOutcome,
  WriteOutcome,
  WriteTarget,
} from "../../customer-store.ts";
import { type CustomerRow, columns, readRowVersion, stored } from "./customer-rows.ts";
import { forgetFields, once } from "./idempotency-keys.ts";
import type { Params, StatementCache } from "./statement-cache.ts";

type Creation = {
  readonly tenant: string;
  readonly customer: NewCustomer;
  readonly nowMs: number;
  readonly key: IdempotencyKey | null;
};

type Update = {
  readonly target: WriteTarget;
  readonly changes: CustomerChanges;
  readonly projection: Projection;
  readonly key: IdempotencyKey | null;
};

type Removal = { readonly target: WriteTarget; readonly key: IdempotencyKey | null };

/** The writes on customers, on the writer's connection inside its transaction. */
export const CUSTOMER_WRITES = { createCustomer, updateCustomer, removeCustomer };

export function createCustomer(statements: StatementCache, creation: Creation): CreateOutcome {
  return once(statements, creation.key, null, () => insert(statements, creation));
}

function updateCustomer(statements: StatementCache, write: Update): WriteOutcome {
  const { key, projection, target } = write;
  const customer = projection.fields.length === 0 ? null : target;
  return once(statements, key, customer, () => update(statements, write));
}

function removeCustomer(statements: StatementCache, { target, key }: Removal): RemoveOutcome {
  return once(statements, key, null, () => remove(statements, target));
}

function insert(statements: StatementCache, { tenant, customer, nowMs }: Creation): CreateOutcome {
  const newest = statements.get<{ newest_id: string }>(
    "SELECT newest_id FROM tenants WHERE tenant = ?",
    tenant,
  );
  const id = drawCustomerId(nowMs, newest?.newest_id ?? null);
  const rowVersion = drawRowVersion();
  const { name, email, status } = customer;
  statements.run(
    "INSERT INTO customers (tenant, id, name, email, email_folded, status, row_version, created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
    ...[tenant, id, name, email, foldEmail(email), status, rowVersion, nowMs],
  );
  statements.run(
    "INSERT INTO tenants VALUES (?, ?) ON CONFLICT DO UPDATE SET newest_id = excluded.newest_id",
    ...[tenant, id],
  );
  return { kind: "created", id, rowVersion, isReplayed: false };
}

/**
 * The one statement of PUT and PATCH: it compares and sets; only where it changed nothing a SELECT says why.
 */
function update(statements: StatementCache, { target, changes, projection }: Update): WriteOutcome {
  const { name, email, status } = changes;
  const values = Object.entries({
    name,
    email,
    email_folded: email === undefined ? undefined : foldEmail(email),
    status,
    row_version: drawRowVersion(),
  }).flatMap(([column, value]) => (value === undefined ? [] : [{ column, value }]));
  const set = values.map(({ column }) => `${column} = ?`).join(", ");
  const where = whereTarget(target);
  const sql = `UPDATE customers SET ${set} WHERE ${where.sql} RETURNING ${columns(projection)}`;
  const row = statements.get<CustomerRow>(sql, ...values.map(({ value }) => value), ...where.params);
  if (row === null) return whyNot(statements, target);
  return { kind: "applied", ...stored(row, projection), isReplayed: false };
}

function remove(statements: StatementCache, target: WriteTarget): RemoveOutcome {
  const where = whereTarget(target);
  const isRemoved = statements.run(`DELETE FROM customers WHERE ${where.sql}`, ...where.params) > 0;
  if (!isRemoved) return whyNot(statements, target);
  forgetFields(statements, target);
  return { kind: "removed", isReplayed: false };
}

function whyNot(
  statements: StatementCache,
  { tenant, id }: WriteTarget,
): { kind: "missing" } | { kind: "stale"; rowVersion: RowVersion } {
  const rowVersion = readRowVersion(statements, tenant, id);
  return rowVersion === null ? { kind: "missing" } : { kind: "stale", rowVersion };
}

function whereTarget({ tenant, id, expected }: WriteTarget): { sql: string; params: Params } {
  if (typeof expected === "string") {
    return { sql: "tenant = ? AND id = ? AND row_version = ?", params: [tenant, id, expected] };
  }
  // As JSON: a list of any length is one statement.
  return {
    sql: "tenant = ? AND id = ? AND row_version NOT IN (SELECT value FROM json_each(?))",
    params: [tenant, id, JSON.stringify(expected.anyExcept)],
  };
}
