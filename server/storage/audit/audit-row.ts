import type { ChainedEntry } from "../../domain/audit/audit-chain.ts";
import type { AuditEntry, AuditedOperation } from "../../domain/audit/audit-entry.ts";
import type { FieldName } from "../../domain/customer/field-registry.ts";
import type { RowVersion } from "../../domain/entity-tag.ts";

/** A row of the table `audit`, as every engine stores it. PostgreSQL's driver gives its numbers as text. */
export type AuditRow = {
  readonly tenant: string;
  readonly customer_id: string;
  /** Null while the row has no place in its chain. */
  readonly number: number | string | null;
  readonly time: number | string;
  readonly client: string;
  readonly token_prefix: string;
  readonly request_id: string;
  readonly operation: AuditedOperation;
  readonly version_before: RowVersion | null;
  readonly version_after: RowVersion | null;
  readonly changed: string;
  readonly without_if_match: number;
  readonly with_key: number;
  readonly values_digest: string | null;
  /** Both null where no values are kept beside it, and left out where they are not read. */
  readonly salt?: string | null;
  readonly content?: string | null;
  /** Null while the row has no place in its chain. */
  readonly hash: string | null;
};

export function auditEntry(row: AuditRow): AuditEntry {
  const { salt = null, content = null } = row;
  return {
    tenant: row.tenant,
    customerId: row.customer_id,
    timeMs: Number(row.time),
    client: row.client,
    tokenPrefix: row.token_prefix,
    requestId: row.request_id,
    operation: row.operation,
    versionBefore: row.version_before,
    versionAfter: row.version_after,
    changed: row.changed === "" ? [] : (row.changed.split(",") as FieldName[]),
    isWithoutIfMatch: row.without_if_match === 1,
    hasKey: row.with_key === 1,
    valuesDigest: row.values_digest,
    values: salt === null || content === null ? null : { salt, content },
  };
}

/** @param row one that has a place in its chain */
export function chainedEntry(row: AuditRow): ChainedEntry {
  return { ...auditEntry(row), number: Number(row.number), hash: row.hash ?? "" };
}

/** A common table expression: the tenants of a table, by one look-up a tenant. DISTINCT would read every row. */
function tenantsOf(table: string): string {
  return `${table}_tenants(tenant) AS (SELECT min(tenant) FROM ${table}
    UNION ALL SELECT (SELECT min(tenant) FROM ${table} a WHERE a.tenant > t.tenant)
      FROM ${table}_tenants t WHERE t.tenant IS NOT NULL)`;
}

/** The tenants that have a chain, or values that have lost it. */
export const AUDIT_TENANTS = `WITH RECURSIVE ${tenantsOf("audit")}, ${tenantsOf("audit_values")}
  SELECT tenant FROM audit_tenants WHERE tenant IS NOT NULL
    UNION SELECT tenant FROM audit_values_tenants WHERE tenant IS NOT NULL
    UNION SELECT tenant FROM audit_anchors ORDER BY tenant`;
