import { storedScope } from "../../domain/policy/scope.ts";
import type { TokenRecord } from "./token-store.ts";

export const TOKEN_COLUMNS =
  "prefix, client, role, tenant, scope_fields, scope_operations, created_at, expires_at, last_used_at, last_used_from, replaced_by, revoked_at";

/** A row of the table `tokens`, as every engine stores it. `Time` is text where a driver gives a bigint so. */
export type TokenRow<Time extends number | string = number | string> = {
  readonly prefix: string;
  readonly client: string;
  readonly role: string;
  readonly tenant: string | null;
  readonly scope_fields: string | null;
  readonly scope_operations: string | null;
  readonly created_at: Time;
  readonly expires_at: Time | null;
  readonly last_used_at: Time | null;
  readonly last_used_from: string | null;
  readonly replaced_by: string | null;
  readonly revoked_at: Time | null;
};

export function tokenRecord(row: TokenRow): TokenRecord {
  return {
    prefix: row.prefix,
    client: row.client,
    role: row.role,
    tenant: row.tenant,
    scope: storedScope(row.scope_fields, row.scope_operations),
    createdAtMs: Number(row.created_at),
    expiresAtMs: storedTime(row.expires_at),
    lastUsedAtMs: storedTime(row.last_used_at),
    lastUsedFrom: row.last_used_from,
    replacedBy: row.replaced_by,
    revokedAtMs: storedTime(row.revoked_at),
  };
}

/** @param value of a column for a time: PostgreSQL's driver gives a bigint as text @returns ms since 1970 */
export function storedTime(value: number | string | null): number | null {
  return value === null ? null : Number(value);
}
