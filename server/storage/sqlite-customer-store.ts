import type { CustomerChanges, CustomerFields, NewCustomer, Replacement } from "../domain/customer.ts";
import { drawRowVersion, type RowVersion } from "../domain/entity-tag.ts";
import type { Projection } from "../domain/projection.ts";
import {
  type CreateOutcome,
  type CustomerStore,
  IDEMPOTENCY_KEY_MS,
  type IdempotencyKey,
  type Page,
  type PageQuery,
  type RemoveOutcome,
  type StoredCustomer,
  type WriteOutcome,
  type WriteTarget,
} from "./customer-store.ts";
import type { SqliteConnections } from "./sqlite-connections.ts";
import type { Params, StatementCache } from "./statement-cache.ts";

type Row = CustomerFields & { readonly row_version: RowVersion };
type KeptKey = {
  readonly digest: Uint8Array;
  readonly customer_id: string;
  readonly row_version: RowVersion;
};

/** Customers in SQLite. Reads share one transaction a turn, writes one commit a turn. */
export class SqliteCustomerStore implements CustomerStore {
  readonly cursorKey: Uint8Array;
  readonly #connections: SqliteConnections;
  readonly #reader: StatementCache;
  readonly #writer: StatementCache;

  constructor(connections: SqliteConnections) {
    this.#connections = connections;
    this.#reader = connections.reader;
    this.#writer = connections.writer;
    const row = connections.read.run(() =>
      this.#reader.get<{ key: Uint8Array }>("SELECT key FROM cursor_key"),
    );
    if (row === null) throw new Error("the database has no cursor key");
    this.cursorKey = row.key;
  }

  read(tenant: string, id: string, projection: Projection): StoredCustomer | null {
    const sql = selectOf(projection);
    const row = this.#connections.read.run(() => this.#reader.get<Row>(sql, tenant, id));
    return row === null ? null : stored(row, projection);
  }

  rowVersion(tenant: string, id: string): RowVersion | null {
    return this.#connections.read.run(() => rowVersionIn(this.#reader, tenant, id));
  }

  page(query: PageQuery, projection: Projection): Page {
    const { tenant, after, limit, status, email } = query;
    const conditions = ["tenant = ?"];
    const params: Params = [tenant];
    const where = (condition: string, value: string | null): void => {
      if (value === null) return;
      conditions.push(condition);
      params.push(value);
    };
    where("id > ?", after);
    where("status = ?", status);
    where("email = ?", email);
    // The id as the paging key goes under another name: it is in the body only where the projection has it.
    const sql = `SELECT ${columns(projection)}, id AS page_key FROM customers WHERE ${conditions.join(" AND ")} ORDER BY id LIMIT ?`;
    const rows = this.#connections.read.run(() =>
      this.#reader.all<Row & { page_key: string }>(sql, ...params, limit + 1),
    );
    const items = rows.slice(0, limit).map((row) => stored(row, projection));
    return { items, lastId: rows.length > limit ? (rows[limit - 1]?.page_key ?? null) : null };
  }

  create(
    tenant: string,
    customer: NewCustomer,
    nowMs: number,
    key: IdempotencyKey | null,
  ): Promise<CreateOutcome> {
    return this.#connections.write.run(() => {
      const earlier = key === null ? null : this.#earlierCreate(tenant, key);
      if (earlier !== null) return earlier;
      // UUIDv7: the order of ids is the order of creation, which is the order of pages.
      const id = Bun.randomUUIDv7("hex", nowMs);
      const rowVersion = drawRowVersion();
      this.#writer.run(
        "INSERT INTO customers (tenant, id, name, email, status, row_version, created_at) VALUES (?, ?, ?, ?, ?, ?, ?)",
        ...[tenant, id, customer.name, customer.email, customer.status, rowVersion, nowMs],
      );
      if (key !== null) this.#keep(tenant, key, id, rowVersion);
      return { kind: "created", id, rowVersion };
    });
  }

  replace(target: WriteTarget, next: Replacement, projection: Projection): Promise<WriteOutcome> {
    return this.#update(target, { name: next.name, email: next.email }, projection);
  }

  patch(target: WriteTarget, changes: CustomerChanges, projection: Projection): Promise<WriteOutcome> {
    return this.#update(target, changes, projection);
  }

  remove(target: WriteTarget): Promise<RemoveOutcome> {
    const { sql, params } = whereTarget(target);
    return this.#connections.write.run(() => {
      const removed = this.#writer.run(`DELETE FROM customers WHERE ${sql}`, ...params) > 0;
      return removed ? { kind: "removed" } : this.#whyNot(target);
    });
  }

  ping(): void {
    this.#connections.read.run(() => this.#reader.get("SELECT 1 FROM customers LIMIT 1"));
  }

  close(): Promise<void> {
    return this.#connections.close();
  }

  /** The one statement of PUT and PATCH: it compares and sets; only where it changed nothing a SELECT says why. */
  #update(target: WriteTarget, changes: CustomerChanges, projection: Projection): Promise<WriteOutcome> {
    const names = (["name", "email", "status"] as const).filter((name) => changes[name] !== undefined);
    const set = [...names, "row_version"].map((column) => `${column} = ?`).join(", ");
    const { sql: where, params: key } = whereTarget(target);
    const sql = `UPDATE customers SET ${set} WHERE ${where} RETURNING ${columns(projection)}`;
    return this.#connections.write.run(() => {
      const values = names.map((name) => changes[name] ?? null);
      const row = this.#writer.get<Row>(sql, ...values, drawRowVersion(), ...key);
      return row === null ? this.#whyNot(target) : { kind: "applied", ...stored(row, projection) };
    });
  }

  #whyNot({ tenant, id }: WriteTarget): { kind: "missing" } | { kind: "stale"; rowVersion: RowVersion } {
    const rowVersion = rowVersionIn(this.#writer, tenant, id);
    return rowVersion === null ? { kind: "missing" } : { kind: "stale", rowVersion };
  }

  #earlierCreate(tenant: string, { client, key, digest, nowMs }: IdempotencyKey): CreateOutcome | null {
    const row = this.#writer.get<KeptKey>(
      "SELECT digest, customer_id, row_version FROM idempotency_keys WHERE tenant = ? AND client = ? AND key = ? AND expires_at > ?",
      ...[tenant, client, key, nowMs],
    );
    if (row === null) return null;
    if (Buffer.compare(row.digest, digest) !== 0) return { kind: "key-reused" };
    return { kind: "replayed", id: row.customer_id, rowVersion: row.row_version };
  }

  #keep(
    tenant: string,
    { client, key, digest, nowMs }: IdempotencyKey,
    id: string,
    rowVersion: RowVersion,
  ): void {
    this.#writer.run("DELETE FROM idempotency_keys WHERE expires_at <= ?", nowMs);
    this.#writer.run(
      "INSERT INTO idempotency_keys (tenant, client, key, digest, customer_id, row_version, expires_at) VALUES (?, ?, ?, ?, ?, ?, ?)",
      ...[tenant, client, key, digest, id, rowVersion, nowMs + IDEMPOTENCY_KEY_MS],
    );
  }
}

/** Exactly the columns of a projection, and the version of the whole. */
function columns(projection: Projection): string {
  return [...projection, "row_version"].join(", ");
}

const selects = new Map<Projection, string>();

/** The SELECT of one customer, written once for each projection. */
function selectOf(projection: Projection): string {
  let sql = selects.get(projection);
  if (sql === undefined) {
    sql = `SELECT ${columns(projection)} FROM customers WHERE tenant = ? AND id = ?`;
    selects.set(projection, sql);
  }
  return sql;
}

function stored(row: Row, projection: Projection): StoredCustomer {
  const fields: CustomerFields = {};
  for (const field of projection) {
    const value = row[field];
    if (value !== undefined) fields[field] = value;
  }
  return { rowVersion: row.row_version, fields };
}

function whereTarget({ tenant, id, expected }: WriteTarget): { sql: string; params: Params } {
  return expected === "any"
    ? { sql: "tenant = ? AND id = ?", params: [tenant, id] }
    : { sql: "tenant = ? AND id = ? AND row_version = ?", params: [tenant, id, expected] };
}

function rowVersionIn(statements: StatementCache, tenant: string, id: string): RowVersion | null {
  const sql = "SELECT row_version FROM customers WHERE tenant = ? AND id = ?";
  return statements.get<Row>(sql, tenant, id)?.row_version ?? null;
}
