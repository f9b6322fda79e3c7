import { TOKEN_COLUMNS } from "../../tokens/token-row.ts";

/**
 * $1 digests, hexadecimal. Every request asks this, so it is also how
 * a running service learns that a migration has left it behind.
 */
export const FIND_TOKEN_TEXT = `SELECT i.n::int AS n, t.client, t.role, t.tenant, t.scope_fields, t.scope_operations,
    t.token_id, t.created_at, t.expires_at, t.last_used_at,
    m.application, m.schema_version, m.min_version, current_setting('in_hot_standby') AS in_hot_standby
  FROM unnest($1::text[]) WITH ORDINALITY AS i(digest, n)
  JOIN meta m ON m.only_row = 1
  LEFT JOIN tokens t ON t.digest = decode(i.digest, 'hex') AND t.revoked_at IS NULL`;

/** $1 digest, $2 prefix, $3 client, $4 role, $5 tenant, $6 fields, $7 operations, $8 now, $9 when it expires. */
export const INSERT_TOKEN_TEXT = `INSERT INTO tokens (digest, prefix, client, role, tenant, scope_fields, scope_operations, created_at, expires_at)
  VALUES (decode($1::text, 'hex'), $2::text, $3::text, $4::text, $5::text, $6::text, $7::text, $8::bigint, $9::bigint)
  RETURNING $5::text IS NOT NULL
    AND NOT EXISTS (SELECT FROM tokens WHERE tenant = $5::text)
    AND NOT EXISTS (SELECT FROM customers WHERE tenant = $5::text) AS is_tenant_new`;

/**
 * $1 digest, $2 digest and $3 prefix of the new token, $4 now, $5 when the old one ends at the latest, $6 when the new one
 * does, $7 whether it is valid for as long as the old one was to be. Rows: the new token and the old one.
 */
export const ROTATE_TOKEN_TEXT = `WITH old AS (
    SELECT * FROM tokens WHERE digest = decode($1::text, 'hex') AND revoked_at IS NULL
      -- One that has ended must not come back by its successor.
      AND (expires_at IS NULL OR expires_at > $4::bigint) FOR UPDATE
  ), made AS (
    INSERT INTO tokens (digest, prefix, client, role, tenant, scope_fields, scope_operations, created_at, expires_at, token_id)
    SELECT decode($2::text, 'hex'), $3::text, client, role, tenant, scope_fields, scope_operations, $4::bigint,
      CASE WHEN NOT $7::boolean THEN $6::bigint
        WHEN newest_from IS NULL THEN $4::bigint + expires_at - created_at
        ELSE $4::bigint + newest_until - newest_from END,
      family_id
    FROM old
    CROSS JOIN LATERAL (SELECT coalesce(token_id, left(encode(digest, 'hex'), 32)) AS family_id) AS family
    -- The end of a token that was rotated is that of its overlap; how long it was to be valid is known by the newest one.
    LEFT JOIN LATERAL (
      SELECT n.created_at AS newest_from, n.expires_at AS newest_until FROM tokens n
      WHERE old.replaced_by IS NOT NULL AND n.token_id = family_id AND n.replaced_by IS NULL
      ORDER BY n.created_at DESC LIMIT 1
    ) AS newest ON true
    RETURNING true AS is_new, ${TOKEN_COLUMNS}
  ), replaced AS (
    UPDATE tokens t SET expires_at = least(t.expires_at, $5::bigint), replaced_by = $3::text
    FROM old WHERE t.digest = old.digest
    RETURNING false AS is_new, ${qualified("t")}
  )
  SELECT * FROM made UNION ALL SELECT * FROM replaced ORDER BY is_new DESC`;

/** {@link TOKEN_COLUMNS} of one of several tables. */
export function qualified(table: string): string {
  return TOKEN_COLUMNS.replace(/\w+/g, (name) => `${table}.${name}`);
}
