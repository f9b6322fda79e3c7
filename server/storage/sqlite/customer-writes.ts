import type { CustomerChanges, NewCustomer } from "../../domain/customer.ts";
import { drawCustomerId } from "../../domain/customer-id.ts";
import { drawRowVersion, type RowVersion } from "../../domain/entity-tag.ts";
import type { Projection } from "../../domain/projection.ts";
import {
  type CreateOutcome,
  IDEMPOTENCY_KEY_MS,
  type IdempotencyKey,
  type RemoveOutcome,
  type WriteOutcome,
  type WriteTarget,
} from "../customer-store.ts";
import { type CustomerRow, columns, readRowVersion, stored } from "./customer-rows.ts";
import type { Params, StatementCache } from "./statement-cache.ts";

export type Creation = {
  readonly tenant: string;
  readonly customer: NewCustomer;
  readonly nowMs: number;
  readonly key: IdempotencyKey | null;
};

export type Update = {
  readonly target: WriteTarget;
  readonly changes: CustomerChanges;
  readonly projection: Projection;
};

/** The writes on customers, on the writer's connection inside its transaction. */
export const CUSTOMER_WRITES = { createCustomer, updateCustomer, removeCustomer };

export function createCustomer(statements: StatementCache, creation: Creation): CreateOutcome {
  const { tenant, customer, nowMs, key } = creation;
  const earlier = key === null ? null : earlierCreate(statements, tenant, key);
  if (earlier !== null) return earlier;
  const newest = statements.get<{ id: string }>(
    "SELECT id FROM customers WHERE tenant = ? ORDER BY id DESC LIMIT 1",
    tenant,
  );
  const id = drawCustomerId(nowMs, newest?.id ?? null);
  const rowVersion = drawRowVersion();
  statements.run(
    "INSERT INTO customers (tenant, id, name, email, status, row_version, created_at) VALUES (?, ?, ?, ?, ?, ?, ?)",
    ...[tenant, id, customer.name, customer.email, customer.status, rowVersion, nowMs],
  );
  if (key !== null) keep(statements, tenant, key, id, rowVersion);
  return { kind: "created", id, rowVersion, isReplayed: false };
}

/** The one statement of PUT and PATCH: it compares and sets; only where it changed nothing a SELECT says why. */
function updateCustomer(statements: StatementCache, { target, changes, projection }: Update): WriteOutcome {
  const names = (["name", "email", "status"] as const).filter((name) => changes[name] !== undefined);
  const set = [...names, "row_version"].map((column) => `${column} = ?`).join(", ");
  const where = whereTarget(target);
  const sql = `UPDATE customers SET ${set} WHERE ${where.sql} RETURNING ${columns(projection)}`;
  const values = names.map((name) => changes[name] ?? null);
  const row = statements.get<CustomerRow>(sql, ...values, drawRowVersion(), ...where.params);
  return row === null
    ? whyNot(statements, target)
    : { kind: "applied", ...stored(row, projection), isReplayed: false };
}

function removeCustomer(statements: StatementCache, target: WriteTarget): RemoveOutcome {
  const where = whereTarget(target);
  const isRemoved = statements.run(`DELETE FROM customers WHERE ${where.sql}`, ...where.params) > 0;
  return isRemoved ? { kind: "removed", isReplayed: false } : whyNot(statements, target);
}

function whyNot(
  statements: StatementCache,
  { tenant, id }: WriteTarget,
): { kind: "missing" } | { kind: "stale"; rowVersion: RowVersion } {
  const rowVersion = readRowVersion(statements, tenant, id);
  return rowVersion === null ? { kind: "missing" } : { kind: "stale", rowVersion };
}

function whereTarget({ tenant, id, expected }: WriteTarget): { sql: string; params: Params } {
  if (typeof expected === "string")
    return { sql: "tenant = ? AND id = ? AND row_version = ?", params: [tenant, id, expected] };
  // As JSON: a list of any length is one statement.
  return {
    sql: "tenant = ? AND id = ? AND row_version NOT IN (SELECT value FROM json_each(?))",
    params: [tenant, id, JSON.stringify(expected.anyExcept)],
  };
}

type KeptKey = {
  /** 1 or 0. */
  readonly is_same_body: number;
  readonly customer_id: string;
  readonly row_version: RowVersion;
};

function earlierCreate(
  statements: StatementCache,
  tenant: string,
  { tokenId, key, digest, nowMs }: IdempotencyKey,
): CreateOutcome | null {
  const row = statements.get<KeptKey>(
    "SELECT digest = unhex(?) AS is_same_body, customer_id, row_version FROM idempotency_keys WHERE tenant = ? AND client = ? AND key = ? AND expires_at > ?",
    ...[digest, tenant, tokenId, key, nowMs],
  );
  if (row === null) return null;
  if (row.is_same_body === 0) return { kind: "key-reused" };
  return { kind: "created", id: row.customer_id, rowVersion: row.row_version, isReplayed: true };
}

function keep(
  statements: StatementCache,
  tenant: string,
  { tokenId, key, digest, nowMs }: IdempotencyKey,
  id: string,
  rowVersion: RowVersion,
): void {
  statements.run("DELETE FROM idempotency_keys WHERE expires_at <= ?", nowMs);
  statements.run(
    "INSERT INTO idempotency_keys (tenant, client, key, digest, customer_id, row_version, expires_at) VALUES (?, ?, ?, unhex(?), ?, ?, ?)",
    ...[tenant, tokenId, key, digest, id, rowVersion, nowMs + IDEMPOTENCY_KEY_MS],
  );
}
