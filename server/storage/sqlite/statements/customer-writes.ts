import { AUDITED_FIELDS, type WriteOrigin } from "../../../domain/audit/audit-entry.ts";
import type { ChangedValues } from "../../../domain/customer/change.ts";
import type { CustomerChanges, CustomerFields, NewCustomer } from "../../../domain/customer/customer.ts";
import { drawCustomerId } from "../../../domain/customer/customer-id.ts";
import { foldEmail } from "../../../domain/customer/email.ts";
import type { FieldName } from "../../../domain/customer/field-registry.ts";
import { drawRowVersion, type RowVersion } from "../../../domain/entity-tag.ts";
import { isExpected } from "../../../domain/precondition.ts";
import type { Projection } from "../../../domain/projection.ts";
import type {
  CreateOutcome,
  IdempotencyKey,
  RemoveOutcome,
  WriteOutcome,
  WriteTarget,
} from "../../customers/customer-store.ts";
import { appendAudit } from "./audit-rows.ts";
import { type CustomerRow, columns, stored } from "./customer-rows.ts";
import { forgetFields, once } from "./idempotency-keys.ts";
import type { StatementCache } from "./statement-cache.ts";

type Write = { readonly key: IdempotencyKey | null; readonly origin: WriteOrigin };
type Creation = Write & {
  readonly tenant: string;
  readonly customer: NewCustomer;
  readonly nowMs: number;
};
type Removal = Write & { readonly target: WriteTarget };
type Update = Removal & { readonly changes: CustomerChanges; readonly projection: Projection };

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

function removeCustomer(statements: StatementCache, removal: Removal): RemoveOutcome {
  return once(statements, removal.key, null, () => remove(statements, removal));
}

function insert(
  statements: StatementCache,
  { tenant, customer, nowMs, key, origin }: Creation,
): CreateOutcome {
  const sql = "SELECT newest_id FROM tenants WHERE tenant = ?";
  const newest = statements.get<{ newest_id: string }>(sql, tenant);
  const id = drawCustomerId(nowMs, newest?.newest_id ?? null);
  const rowVersion = drawRowVersion();
  const write = { ...origin, tenant, customerId: id, versionBefore: null, versionAfter: rowVersion };
  const change = appendAudit(
    statements,
    { ...write, changed: AUDITED_FIELDS, hasKey: key !== null },
    origin.keepsValues ? changesOf(AUDITED_FIELDS, {}, customer) : null,
    0,
  );
  const { name, email, status } = customer;
  statements.run(
    `INSERT INTO customers (tenant, id, name, email, email_folded, status, row_version, created_at, last_change)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    ...[tenant, id, name, email, foldEmail(email), status, rowVersion, nowMs, change],
  );
  statements.run(
    "INSERT INTO tenants VALUES (?, ?) ON CONFLICT DO UPDATE SET newest_id = excluded.newest_id",
    ...[tenant, id],
  );
  return { kind: "created", id, rowVersion, isReplayed: false };
}

/** The one UPDATE of PUT and PATCH: it compares and sets. What is stored before it says why it changed nothing. */
function update(
  statements: StatementCache,
  { target, changes, projection, key, origin }: Update,
): WriteOutcome {
  const { tenant, id } = target;
  const sent = AUDITED_FIELDS.flatMap((name): [FieldName, string][] => {
    const value = changes[name];
    return value === undefined ? [] : [[name, value]];
  });
  // Compared there: no value is read that nobody wants.
  const compared = sent.map(([name]) => `, ${name} <> ? AS differs_in_${name}`).join("");
  const valuesBefore = origin.keepsValues ? sent.map(([name]) => `, ${name}`).join("") : "";
  const before = statements.get<Before>(
    `SELECT row_version, last_change${compared}${valuesBefore} FROM customers WHERE tenant = ? AND id = ?`,
    ...[...sent.map(([, value]) => value), tenant, id],
  );
  if (before === null) return { kind: "missing" };
  if (!isExpected(target.expected, before.row_version))
    return { kind: "stale", rowVersion: before.row_version };
  // Setting a column writes the pages of its indexes, even when it had the value before.
  const differing = sent.filter(([name]) => before[`differs_in_${name}`] === 1);
  const email = differing.find(([name]) => name === "email")?.[1];
  const folded = email === undefined ? [] : [["email_folded", foldEmail(email)]];
  const rowVersion = drawRowVersion();
  const changed = differing.map(([name]) => name);
  const written = { ...origin, tenant, customerId: id, versionAfter: rowVersion };
  const change = appendAudit(
    statements,
    { ...written, versionBefore: before.row_version, changed, hasKey: key !== null },
    origin.keepsValues && changed.length > 0 ? changesOf(changed, before, changes) : null,
    before.last_change,
  );
  const set = [...differing, ...folded, ["row_version", rowVersion], ["last_change", change]] as const;
  const sql = `UPDATE customers SET ${set.map(([column]) => `${column} = ?`).join(", ")} WHERE tenant = ? AND id = ? AND row_version = ?`;
  const params = [...set.map(([, value = ""]) => value), tenant, id, before.row_version];
  // RETURNING takes 1.2 µs of processor time, and the version is known.
  const hasBody = projection.kind !== "none";
  const row = hasBody
    ? statements.get<CustomerRow>(`${sql} RETURNING ${columns(projection)}`, ...params)
    : statements.run(sql, ...params) === 1 && { row_version: rowVersion };
  if (!row) throw new Error("the row changed inside its transaction");
  return { kind: "applied", ...stored(row, projection), isReplayed: false };
}

/** 1 for each field whose value is to become another, and its value where values are kept. */
type Before = { readonly row_version: RowVersion; readonly last_change: number } & Partial<
  Record<`differs_in_${FieldName}`, 0 | 1>
> &
  CustomerFields;

function changesOf(
  changed: readonly FieldName[],
  before: CustomerFields,
  after: CustomerFields,
): ChangedValues {
  return Object.fromEntries(
    changed.map((name) => [name, { before: before[name] ?? null, after: after[name] ?? "" }]),
  );
}

function remove(statements: StatementCache, { target, key, origin }: Removal): RemoveOutcome {
  const { tenant, id } = target;
  const before = statements.get<Before>(
    "SELECT row_version, last_change FROM customers WHERE tenant = ? AND id = ?",
    ...[tenant, id],
  );
  if (before === null) return { kind: "missing" };
  const { row_version: versionBefore, last_change: previous } = before;
  if (!isExpected(target.expected, versionBefore)) return { kind: "stale", rowVersion: versionBefore };
  const sql = "DELETE FROM customers WHERE tenant = ? AND id = ? AND row_version = ?";
  statements.run(sql, tenant, id, versionBefore);
  forgetFields(statements, target);
  const write = { ...origin, tenant, customerId: id, versionBefore, versionAfter: null };
  appendAudit(statements, { ...write, changed: [], hasKey: key !== null }, null, previous);
  return { kind: "removed", isReplayed: false };
}
