/** Why a command refuses tenants that are named and not known, as after a typing error. */
export function noTenant(names: readonly string[]): string {
  return `No tenant ${names.map((name) => name || '""').join(", ")} ever had a customer. Correct --tenant.`;
}
