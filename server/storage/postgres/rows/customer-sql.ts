import { AUDITED_FIELDS } from "../../../domain/audit/audit-entry.ts";
import type { Projection } from "../../../domain/projection.ts";
import { IDEMPOTENCY_KEY_MS } from "../../customers/customer-store.ts";

/**
 * Every statement on customers. A batch comes as one array for each column (`unnest`), so that a batch
 * of any size is one prepared statement; rows are numbered from 1 in `n`. All rows name their tenant.
 *
 * Writes take locks in the order of the arrays, which callers sort:
 * of batches that overlap none waits for another that waits for it.
 */

/** Exactly the columns of a projection, and the version of the whole. */
export function columns(table: string, projection: Projection): string {
  return [...projection.fields, "row_version"].map((name) => `${table}.${name}`).join(", ");
}

/** $1 tenants, $2 ids. A missing customer has no row. */
export function readText(projection: Projection): string {
  return `SELECT i.n::int AS n, ${columns("c", projection)}, current_setting('in_hot_standby') AS in_hot_standby
    FROM unnest($1::text[], $2::uuid[]) WITH ORDINALITY AS i(tenant, id, n)
    LEFT JOIN customers c ON c.tenant = i.tenant AND c.id = i.id`;
}

/**
 * Under which versions a row of `i` may write: exactly one, or any but those of a list separated by commas.
 */
const IS_EXPECTED = `(i.expected IS NULL OR c.row_version = i.expected)
    AND (i.excluded IS NULL OR c.row_version <> ALL (string_to_array(i.excluded, ',')))`;

/**
 * The rows of `i` that may write, locked, with what is stored before. Where a statement writes several rows, those
 * that another session holds are left out and not waited for: one row locked for 2 s would stop
 * every other write. The lock is taken before the version is compared once more.
 */
function locked(mode: "FOR NO KEY UPDATE" | "FOR UPDATE", isSkipping: boolean, more = ""): string {
  return `cur AS MATERIALIZED (
    SELECT i.*, c.row_version AS before${more} FROM i JOIN customers c ON c.tenant = i.tenant AND c.id = i.id
    WHERE ${IS_EXPECTED} ${mode} OF c ${isSkipping ? "SKIP LOCKED" : ""})`;
}

/** Names of the fields of a batch that become others, separated by commas; a column that is null stays as it is. */
const CHANGED = `, concat_ws(',', ${AUDITED_FIELDS.map((name) => `CASE WHEN i.${name} <> c.${name} THEN '${name}' END`).join(", ")}) AS changed`;

/** Their values, as JSON of ChangedValues. */
const CONTENT = `, json_strip_nulls(json_build_object(${AUDITED_FIELDS.map((name) => `'${name}', CASE WHEN i.${name} <> c.${name} THEN json_build_object('before', c.${name}, 'after', i.${name}) END`).join(", ")}))::text AS content`;
const CREATED_CONTENT = `json_build_object(${AUDITED_FIELDS.map((name) => `'${name}', json_build_object('before', NULL, 'after', i.${name})`).join(", ")})::text`;

const ORIGIN_COLUMNS = [
  "client text",
  "token_prefix text",
  "request_id text",
  "operation text",
  "without_if_match smallint",
];

type Audited = {
  /** Rows of a batch, as `i`, joined with `done`. */
  readonly from: string;
  readonly id: string;
  readonly before: string;
  readonly after: string;
  /** Names of fields, separated by commas. */
  readonly changed: string;
  /** JSON of ChangedValues, to be kept beside the row where a field has changed; null to keep none. */
  readonly content: string | null;
};

/** Appends a row to the audit trail for each write that was applied; its place in the chain comes later. */
function audited({ from, id, before, after, changed, content }: Audited, isKeyed: boolean): string {
  const digest =
    content === null
      ? "NULL"
      : `CASE WHEN ${changed} <> '' THEN sha256(decode(i.salt, 'hex') || convert_to(${content}, 'UTF8')) END`;
  const values =
    content === null
      ? ""
      : `, valued AS (
    INSERT INTO audit_values (tenant, customer_id, id, salt, content)
    SELECT a.tenant, a.customer_id, a.id, decode(i.salt, 'hex'), ${content}
    FROM ${from} JOIN audited a ON a.version_after = ${after} WHERE a.values_digest IS NOT NULL)`;
  return `, audited AS (
    INSERT INTO audit (tenant, customer_id, time, client, token_prefix, request_id, operation, version_before, version_after,
      changed, without_if_match, with_key, values_digest)
    SELECT i.tenant, ${id}, (extract(epoch FROM clock_timestamp()) * 1000)::bigint, i.client, i.token_prefix, i.request_id,
      i.operation, ${before}, ${after}, ${changed}, i.without_if_match, ${isKeyed ? 1 : 0}, ${digest}
    FROM ${from}
    RETURNING tenant, customer_id, id, version_after, values_digest)${values}`;
}

type WriteShape = {
  /** Whether rows that another session holds are left out. */
  readonly isSkipping: boolean;
  readonly isKeyed: boolean;
  /** Whether the trail keeps the values of the fields that change. */
  readonly keepsValues: boolean;
};

const SALT_COLUMN = "salt text";
const TARGET_COLUMNS = ["tenant text", "id uuid", "expected text", "excluded text"];
const KEY_COLUMNS = ["token_id text", "key text", "digest text", "key_expires_at bigint"];

/**
 * PUT and PATCH: compares and sets. A column that is null stays
 * as it is. Returns a row for each write that it applied.
 */
export function updateText(projection: Projection, { isSkipping, isKeyed, keepsValues }: WriteShape): string {
  const sent = [...ORIGIN_COLUMNS, ...(keepsValues ? [SALT_COLUMN] : []), ...(isKeyed ? KEY_COLUMNS : [])];
  const own = ["name text", "email text", "email_folded text", "status text", "next text"];
  const fields = projection.fields.map((name) => `'${name}', done.${name}`).join(", ");
  const outcome = `json_build_object('kind', 'applied', 'rowVersion', done.row_version, 'fields', ${fields === "" ? "'{}'::json" : "NULL"})`;
  return `WITH ${input("i", [...TARGET_COLUMNS, ...own, ...sent])},
  ${locked("FOR NO KEY UPDATE", isSkipping, keepsValues ? CHANGED + CONTENT : CHANGED)}, done AS (
    UPDATE customers c SET name = COALESCE(i.name, c.name), email = COALESCE(i.email, c.email),
      email_folded = COALESCE(i.email_folded, c.email_folded), status = COALESCE(i.status, c.status),
      row_version = i.next
    FROM cur AS i WHERE c.tenant = i.tenant AND c.id = i.id
    RETURNING i.n::int AS n, ${columns("c", projection)})
  ${audited(
    {
      ...{ from: "cur AS i JOIN done ON done.n = i.n", id: "i.id", before: "i.before", after: "i.next" },
      ...{ changed: "i.changed", content: keepsValues ? "i.content" : null },
    },
    isKeyed,
  )}
  ${isKeyed ? keep("done.n = i.n", outcome, fields === "" ? null : `json_build_object(${fields})`) : ""}
  SELECT * FROM done`;
}

/** DELETE, under the same conditions. */
export function removeText({ isSkipping, isKeyed }: Omit<WriteShape, "keepsValues">): string {
  return `WITH ${input("i", [...TARGET_COLUMNS, ...ORIGIN_COLUMNS, ...(isKeyed ? KEY_COLUMNS : [])])},
  ${locked("FOR UPDATE", isSkipping)}, done AS (
    DELETE FROM customers c USING cur AS i WHERE c.tenant = i.tenant AND c.id = i.id
    RETURNING i.n::int AS n)
  ${audited(
    {
      ...{ from: "cur AS i JOIN done ON done.n = i.n", id: "i.id", before: "i.before", after: "NULL" },
      ...{ changed: "''", content: null },
    },
    isKeyed,
  )}
  ${isKeyed ? keep("done.n = i.n", "json_build_object('kind', 'removed')", null) : ""}
  SELECT * FROM done`;
}

/**
 * POST. First come the tenants of the batch, each with its first and last id as drawn and the sum of its
 * steps; then the customers. The tenant's row is locked until the commit, so that no reader of pages
 * sees a later id before an earlier one: without it such a reader missed 3,228 of 15,579. Where the
 * clock of another service is ahead, all ids of the tenant in this batch are moved on from its newest
 * one. A row returns what it held before in `previous`, since an UPDATE returns only what it made.
 */
export function createText({ isKeyed, keepsValues }: Omit<WriteShape, "isSkipping">): string {
  const tenants = ["tenant text", "first uuid", "last uuid", "steps bigint"];
  const own = [
    "tenant text",
    "first uuid",
    "drawn uuid",
    "step bigint",
    "name text",
    "email text",
    "email_folded text",
  ];
  const rest = ["status text", "row_version text", "created_at bigint"];
  const sent = [...ORIGIN_COLUMNS, ...(keepsValues ? [SALT_COLUMN] : []), ...(isKeyed ? KEY_COLUMNS : [])];
  const customers = [...own, ...rest, ...sent];
  return `WITH ${input("p", tenants)}, ${input("i", customers, tenants.length + 1)}, t AS (
    INSERT INTO tenants AS t (tenant, newest_id) SELECT p.tenant, p.last FROM p ORDER BY p.n
    ON CONFLICT (tenant) DO UPDATE SET previous_id = t.newest_id, newest_id = (
      SELECT CASE WHEN p.first > t.newest_id THEN p.last ELSE id_after(t.newest_id, p.steps) END
      FROM p WHERE p.tenant = t.tenant)
    RETURNING t.tenant, t.previous_id
  ), done AS (
    INSERT INTO customers (tenant, id, name, email, email_folded, status, row_version, created_at)
    SELECT i.tenant, CASE WHEN t.previous_id IS NULL OR i.first > t.previous_id THEN i.drawn ELSE id_after(t.previous_id, i.step) END,
      i.name, i.email, i.email_folded, i.status, i.row_version, i.created_at
    FROM i JOIN t ON t.tenant = i.tenant
    RETURNING id, row_version)
  ${audited(
    {
      ...{ from: "i JOIN done ON done.row_version = i.row_version", id: "done.id", before: "NULL" },
      ...{ after: "done.row_version", changed: `'${AUDITED_FIELDS.join()}'` },
      content: keepsValues ? CREATED_CONTENT : null,
    },
    isKeyed,
  )}
  ${isKeyed ? keep("done.row_version = i.row_version", "json_build_object('kind', 'created', 'id', done.id, 'rowVersion', done.row_version)", null) : ""}
  SELECT i.n::int AS n, done.id, done.row_version FROM done JOIN i ON i.row_version = done.row_version`;
}

/**
 * Why a write was not applied: the version that is stored now, and what is kept under its
 * key. A statement of its own: one that wrote and looked together would see the state from
 * before it waited, and 1,514 of 9,894 refusals named the very version that was sent.
 */
export const JUDGE_TEXT = `SELECT i.n::int AS n, c.row_version, k.outcome, f.fields, k.digest = decode(i.digest, 'hex') AS is_same_request
    FROM unnest($1::text[], $2::uuid[], $3::text[], $4::text[], $5::text[], $6::bigint[])
      WITH ORDINALITY AS i(tenant, id, token_id, key, digest, now, n)
    LEFT JOIN customers c ON c.tenant = i.tenant AND c.id = i.id
    LEFT JOIN idempotency_keys k ON k.token_id = i.token_id AND k.key = i.key AND k.expires_at > i.now
    LEFT JOIN kept_fields f ON f.token_id = k.token_id AND f.key = k.key`;

/** Rows of a batch, from one array for each column; the order of the arrays is that of the locks. */
function input(name: string, columns: readonly string[], firstParam = 1): string {
  const arrays = columns.map((column, index) => `$${firstParam + index}::${column.split(" ")[1]}[]`);
  const names = columns.map((column) => column.split(" ")[0]);
  return `${name} AS MATERIALIZED (
    SELECT * FROM unnest(${arrays.join(", ")}) WITH ORDINALITY AS ${name}(${names.join(", ")}, n))`;
}

/**
 * A key that is kept and not expired makes the NULL that its column refuses,
 * so that the whole statement fails: a write and the memory of it are one.
 *
 * @param outcome as JSON, without the fields
 * @param fields of the customer in the outcome, as JSON; null where there are none
 */
function keep(isItsWrite: string, outcome: string, fields: string | null): string {
  const keptFields =
    fields === null
      ? `DELETE FROM kept_fields f USING i JOIN done ON ${isItsWrite} WHERE f.token_id = i.token_id AND f.key = i.key`
      : `INSERT INTO kept_fields SELECT i.token_id, i.key, i.tenant, i.id, ${fields}::text FROM i JOIN done ON ${isItsWrite}
    ON CONFLICT (token_id, key) DO UPDATE SET
      tenant = EXCLUDED.tenant, customer_id = EXCLUDED.customer_id, fields = EXCLUDED.fields`;
  return `, kept AS (
    INSERT INTO idempotency_keys AS k (token_id, key, digest, outcome, expires_at)
    SELECT i.token_id, i.key, decode(i.digest, 'hex'), ${outcome}::text, i.key_expires_at
    FROM i JOIN done ON ${isItsWrite}
    ON CONFLICT (token_id, key) DO UPDATE SET
      digest = CASE WHEN k.expires_at <= EXCLUDED.expires_at - ${IDEMPOTENCY_KEY_MS} THEN EXCLUDED.digest END,
      outcome = EXCLUDED.outcome, expires_at = EXCLUDED.expires_at
  ), kept_too AS (${keptFields})`;
}
