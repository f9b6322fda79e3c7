/** Who calls: what a token carries. A token without a tenant is for metrics alone. */
export type Caller = { readonly client: string; readonly role: string; readonly tenant: string | null };

/** A token as it is listed: never the token itself, of which only a digest is kept. Times in ms since 1970. */
export type TokenRecord = Caller & {
  readonly prefix: string;
  readonly createdAtMs: number;
  readonly expiresAtMs: number | null;
  /** To the hour. */
  readonly lastUsedAtMs: number | null;
  readonly revokedAtMs: number | null;
};

export type RevokeOutcome =
  | { readonly kind: "revoked"; readonly token: TokenRecord }
  | { readonly kind: "missing" }
  | { readonly kind: "ambiguous"; readonly tokens: readonly TokenRecord[] };

export const TOKEN_COLUMNS =
  "prefix, client, role, tenant, created_at, expires_at, last_used_at, revoked_at FROM tokens";
export type TokenRow = {
  prefix: string;
  client: string;
  role: string;
  tenant: string | null;
  created_at: number;
  expires_at: number | null;
  last_used_at: number | null;
  revoked_at: number | null;
};

export function tokenRecord(row: TokenRow): TokenRecord {
  return {
    prefix: row.prefix,
    client: row.client,
    role: row.role,
    tenant: row.tenant,
    createdAtMs: row.created_at,
    expiresAtMs: row.expires_at,
    lastUsedAtMs: row.last_used_at,
    revokedAtMs: row.revoked_at,
  };
}
