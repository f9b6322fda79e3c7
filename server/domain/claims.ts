import { type Issuer, NAME_PATTERN, type NameRule } from "./policy/issuer.ts";
import type { Policy } from "./policy/policy.ts";
import { ok, type Result, refuse } from "./problem.ts";

/** What a signed token says, once its signature and its times are verified. */
export type Claims = Readonly<Record<string, unknown>>;

const NAME = new RegExp(NAME_PATTERN);

/** Who the policy takes the holder of a token for. A role for metrics alone has no tenant. */
export function holderOf(
  claims: Claims,
  issuer: Issuer,
  policy: Policy,
): Result<{ readonly client: string; readonly role: string; readonly tenant: string | null }> {
  const role = nameOf(claims, issuer.role);
  if (role === null) return unmapped("role", issuer.role);
  const general = policy.roles.get(role);
  const client = nameOf(claims, issuer.client);
  if (client === null) return unmapped("client", issuer.client);
  if (general?.operations.has("metrics") === true) return ok({ client, role, tenant: null });
  const tenant = nameOf(claims, issuer.tenant);
  if (tenant === null) return unmapped("tenant", issuer.tenant);
  const isKnown = general !== undefined || policy.tenants.get(tenant)?.has(role) === true;
  return isKnown ? ok({ client, role, tenant }) : unmapped("role", issuer.role);
}

function nameOf(claims: Claims, rule: NameRule): string | null {
  if (rule.kind === "fixed") return rule.name;
  const values = textsIn(claims, rule.path);
  if (rule.names === null) {
    const [only = ""] = values;
    return values.length === 1 && NAME.test(only) ? only : null;
  }
  for (const [value, name] of rule.names) if (values.includes(value)) return name;
  return null;
}

/** A claim may be one text or several, such as groups. */
function textsIn(claims: Claims, path: readonly string[]): string[] {
  let value: unknown = claims;
  for (const name of path) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, name)) return [];
    value = (value as Claims)[name];
  }
  return (Array.isArray(value) ? value : [value]).filter((text) => typeof text === "string");
}

/** The token is valid, so its holder may learn what it lacks. */
function unmapped(what: "client" | "role" | "tenant", rule: NameRule): Result<never> {
  const claim = rule.kind === "claim" ? `The claim \`${rule.path.join(".")}\` of this token` : "This token";
  return refuse(
    "forbidden-operation",
    `${claim} gives no ${what} of this service. Ask the issuer for another token, or an operator to change the policy.`,
  );
}
