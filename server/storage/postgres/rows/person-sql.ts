/** $1 tenant, $2 the folded email. */
export const WITH_EMAIL_TEXT =
  "SELECT id::text AS id FROM customers WHERE tenant = $1::text AND email_folded = $2::text ORDER BY id";

/** $1 tenant, $2 customer. */
export const RECORD_TEXT = `SELECT id::text AS id, name, email, status, row_version, created_at FROM customers
  WHERE tenant = $1::text AND id = $2::uuid`;

/** $1 tenant, $2 customer, $3 token and $4 key after which the page begins, $5 how many. */
export const KEPT_REPLIES_TEXT = `SELECT f.token_id, f.key, k.expires_at, f.fields FROM kept_fields f
  JOIN idempotency_keys k ON k.token_id = f.token_id AND k.key = f.key
  WHERE f.tenant = $1::text AND f.customer_id = $2::uuid AND (f.token_id, f.key) > ($3::text, $4::text)
  ORDER BY f.token_id, f.key LIMIT $5::int`;

/** $1 tenant, $2 customer. */
export const COUNT_REPLIES_TEXT =
  "SELECT count(*) AS n FROM kept_fields WHERE tenant = $1::text AND customer_id = $2::uuid";

/** $1 tenant, $2 customer and $3 row after which the page begins, $4 how many. */
export const PERSON_VALUES_TEXT = `SELECT customer_id::text AS customer_id, id, content FROM audit_values
  WHERE tenant = $1::text AND (customer_id, id) > ($2::uuid, $3::bigint) ORDER BY customer_id, id LIMIT $4::int`;

/** $1 tenant, $2 customer. */
export const COUNT_VALUES_TEXT =
  "SELECT count(*) AS n FROM audit_values WHERE tenant = $1::text AND customer_id = $2::uuid";

export const MAY_ERASE_TEXT =
  "SELECT current_user AS role, has_table_privilege('audit_values', 'DELETE') AS may_delete";

/** $1 tenant, $2 customer. From then on no write changes it until the transaction ends. */
export const LOCK_CUSTOMER_TEXT =
  "SELECT 1 FROM customers WHERE tenant = $1::text AND id = $2::uuid FOR UPDATE";

/** $1 tenant, $2 customer. */
export const DELETE_CUSTOMER_TEXT =
  "DELETE FROM customers WHERE tenant = $1::text AND id = $2::uuid RETURNING row_version";

/** $1 tenant, $2 customer, $3 who, $4 the operation, $5 the version before; null where it was not there. */
export const APPEND_ERASURE_TEXT = `INSERT INTO audit (tenant, customer_id, time, client, token_prefix, request_id, operation,
    version_before, version_after, changed, without_if_match, with_key)
  VALUES ($1::text, $2::uuid, (extract(epoch FROM clock_timestamp()) * 1000)::bigint, $3::text, '', '', $4::text,
    $5::text, NULL, '', 0, 0)`;

/** $1 tenant, $2 customer, $3 how many. */
export const DELETE_VALUES_TEXT = `DELETE FROM audit_values WHERE tenant = $1::text AND customer_id = $2::uuid AND id IN (
    SELECT id FROM audit_values WHERE tenant = $1::text AND customer_id = $2::uuid ORDER BY id LIMIT $3::int)
  RETURNING 1`;
