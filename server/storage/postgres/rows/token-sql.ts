const TOKEN_COLUMNS = "prefix, client, role, tenant, created_at, expires_at, last_used_at, revoked_at";

/** Times are bigint, which Bun gives as text. */
export type PostgresTokenRow = {
  readonly prefix: string;
  readonly client: string;
  readonly role: string;
  readonly tenant: string | null;
  readonly created_at: string;
  readonly expires_at: string | null;
  readonly last_used_at: string | null;
  readonly revoked_at: string | null;
};

/**
 * $1 digests, hexadecimal. Every request asks this, so it is also how
 * a running service learns that a migration has left it behind.
 */
export const FIND_TOKEN_TEXT = `SELECT i.n::int AS n, t.client, t.role, t.tenant, t.expires_at, t.last_used_at,
    m.application, m.schema_version, m.min_version, current_setting('in_hot_standby') AS in_hot_standby
  FROM unnest($1::text[]) WITH ORDINALITY AS i(digest, n)
  JOIN meta m ON m.only_row = 1
  LEFT JOIN tokens t ON t.digest = decode(i.digest, 'hex') AND t.revoked_at IS NULL`;

/** $1 digest, $2 prefix, $3 client, $4 role, $5 tenant, $6 now, $7 when it expires. */
export const INSERT_TOKEN_TEXT = `INSERT INTO tokens (digest, prefix, client, role, tenant, created_at, expires_at)
  VALUES (decode($1::text, 'hex'), $2::text, $3::text, $4::text, $5::text, $6::bigint, $7::bigint)
  RETURNING $5::text IS NOT NULL
    AND NOT EXISTS (SELECT FROM tokens WHERE tenant = $5::text)
    AND NOT EXISTS (SELECT FROM customers WHERE tenant = $5::text) AS is_tenant_new`;

export const LIST_TOKENS_TEXT = `SELECT ${TOKEN_COLUMNS} FROM tokens ORDER BY created_at, prefix`;

/** $1 digest, $2 now. */
export const REVOKE_TOKEN_TEXT = `UPDATE tokens SET revoked_at = $2::bigint
  WHERE digest = decode($1::text, 'hex') AND revoked_at IS NULL RETURNING ${TOKEN_COLUMNS}`;

/** $1 the first characters. */
export const MATCHING_TOKENS_TEXT = `SELECT encode(digest, 'hex') AS digest, ${TOKEN_COLUMNS} FROM tokens
  WHERE revoked_at IS NULL AND starts_with(prefix, $1::text) ORDER BY prefix`;

/** $1 digest, $2 the hour. Of many servers that see a token's first use in an hour one writes. */
export const NOTE_TOKEN_USE_TEXT = `UPDATE tokens SET last_used_at = greatest($2::bigint, created_at)
  WHERE digest = decode($1::text, 'hex') AND (last_used_at IS NULL OR last_used_at < greatest($2::bigint, created_at))`;
