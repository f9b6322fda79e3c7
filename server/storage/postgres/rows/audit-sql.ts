import type { AuditRow } from "../../audit/audit-row.ts";

/** `id` and `number` are bigint, which Bun gives as text. */
export type PostgresAuditRow = AuditRow & { readonly id: string; readonly number: string | null };

const COLUMNS = `a.tenant, a.customer_id::text AS customer_id, a.id, a.number, a.time, a.client, a.token_prefix, a.request_id,
  a.operation, a.version_before, a.version_after, a.changed, a.without_if_match, a.with_key,
  encode(a.values_digest, 'hex') AS values_digest, encode(a.hash, 'hex') AS hash`;

/** The rows of the trail as `a`, each with the values beside it. */
export const SELECT_AUDIT = `SELECT ${COLUMNS}, encode(v.salt, 'hex') AS salt, v.content
  FROM audit a LEFT JOIN audit_values v ON v.tenant = a.tenant AND v.customer_id = a.customer_id AND v.id = a.id`;

/** The same without the values. */
export const SELECT_AUDIT_ALONE = `SELECT ${COLUMNS} FROM audit a`;

/** $1 tenant, $2 customer. */
export const IS_ERASED_TEXT =
  "SELECT 1 FROM audit WHERE tenant = $1::text AND customer_id = $2::uuid AND operation = 'erase' LIMIT 1";

type SearchScope = { readonly isOneCustomer: boolean };

/** $1 tenant, $2 the number after which the part begins, $3 how many rows it has, then the customer where there is one. */
export function auditPartText({ isOneCustomer }: SearchScope): string {
  return `SELECT max(number) AS last FROM (SELECT number FROM audit
    WHERE tenant = $1::text AND number > $2::bigint ${isOneCustomer ? "AND customer_id = $4::uuid" : ""}
    ORDER BY number LIMIT $3::int) AS part`;
}

/** $1 tenant, $2 and $3 numbers, $4 and $5 times, $6 the client or null, then the customer where there is one. */
export function auditSearchText({ isOneCustomer }: SearchScope): string {
  return `${SELECT_AUDIT} WHERE a.tenant = $1::text AND a.number > $2::bigint AND a.number <= $3::bigint
    AND a.time >= $4::bigint AND a.time < $5::bigint AND ($6::text IS NULL OR a.client = $6::text)
    ${isOneCustomer ? "AND a.customer_id = $7::uuid" : ""} ORDER BY a.number`;
}
