import { storedScope } from "../../../domain/scope.ts";
import type { TokenRecord } from "../../token-store.ts";

export const TOKEN_COLUMNS =
  "prefix, client, role, tenant, scope_fields, scope_operations, created_at, expires_at, last_used_at, last_used_from, replaced_by, revoked_at";
export type TokenRow = {
  prefix: string;
  client: string;
  role: string;
  tenant: string | null;
  scope_fields: string | null;
  scope_operations: string | null;
  created_at: number;
  expires_at: number | null;
  last_used_at: number | null;
  last_used_from: string | null;
  replaced_by: string | null;
  revoked_at: number | null;
};

export function tokenRecord(row: TokenRow): TokenRecord {
  return {
    prefix: row.prefix,
    client: row.client,
    role: row.role,
    tenant: row.tenant,
    scope: storedScope(row.scope_fields, row.scope_operations),
    createdAtMs: row.created_at,
    expiresAtMs: row.expires_at,
    lastUsedAtMs: row.last_used_at,
    lastUsedFrom: row.last_used_from,
    replacedBy: row.replaced_by,
    revokedAtMs: row.revoked_at,
  };
}
