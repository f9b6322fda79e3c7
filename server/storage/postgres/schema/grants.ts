/**
 * What a service does with each table: no DDL, no TRUNCATE, and tokens and tenants are never deleted.
 * Triggers let it give a row of the audit trail its place once, and change and delete no row.
 */
const PRIVILEGES: Readonly<Record<string, string>> = {
  customers: "SELECT, INSERT, UPDATE, DELETE",
  idempotency_keys: "SELECT, INSERT, UPDATE, DELETE",
  kept_fields: "SELECT, INSERT, UPDATE, DELETE",
  tenants: "SELECT, INSERT, UPDATE",
  tokens: "SELECT, INSERT, UPDATE",
  audit: "SELECT, INSERT, UPDATE (number, hash)",
  audit_anchors: "SELECT",
  audit_values: "SELECT, INSERT",
  write_counts: "SELECT, INSERT, UPDATE, DELETE",
  // The first start locks its one row.
  meta: "SELECT, UPDATE (only_row)",
};

/** What retention needs beside those. Triggers let it delete a tenant's oldest rows alone, and keep their last number and hash. */
const RETENTION_PRIVILEGES: Readonly<Record<string, string>> = {
  audit: "DELETE",
  audit_anchors: "INSERT, UPDATE",
};

/** What `person erase` needs beside those of a service. Triggers let it delete the values of an erased customer alone. */
const ERASURE_PRIVILEGES: Readonly<Record<string, string>> = { audit_values: "DELETE" };

/**
 * @returns the SQL that lets a role run the service, with AUDIT_RETENTION_DAYS or without, or erase a person, and
 *   nothing more
 */
export function grantsFor(role: string, { hasAuditRetention = false, mayErase = false } = {}): string {
  const name = `"${role.replaceAll('"', '""')}"`;
  const privileges = [
    PRIVILEGES,
    ...(hasAuditRetention ? [RETENTION_PRIVILEGES] : []),
    ...(mayErase ? [ERASURE_PRIVILEGES] : []),
  ].flatMap(Object.entries);
  const grants = privileges.map(([table, what]) => `GRANT ${what} ON customers.${table} TO ${name};`);
  return [`GRANT USAGE ON SCHEMA customers TO ${name};`, ...grants].join("\n");
}
