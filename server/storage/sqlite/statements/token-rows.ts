import type { TokenRecord } from "../../token-store.ts";

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
