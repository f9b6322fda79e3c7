import { type Static, type TSchema, Type } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { FIELD_NAMES } from "../customer/field-registry.ts";
import { DAY_MS } from "../text/iso-time.ts";
import { nearest } from "../text/nearest.ts";
import { buildIssuers, ISSUERS, type Issuer, issuerFaults, NAME_PATTERN } from "./issuer.ts";
import { buildLimits, LIMITS, type Limits, limitFaults, wrongTokensOf } from "./limits.ts";
import { NO_RIGHTS, narrow, OPERATIONS, type Rights } from "./rights.ts";
import type { Scope } from "./scope.ts";
import type { Quota } from "./token-bucket.ts";

export const WRITE_METHODS = ["PUT", "PATCH", "DELETE"] as const;
export type WriteMethod = (typeof WRITE_METHODS)[number];
/** The methods of the routes. HEAD comes with GET, OPTIONS with every route. */
export const METHODS = ["GET", "POST", ...WRITE_METHODS] as const;

/** Which writes need If-Match. `untilMs` is the first instant at which all do, in ms since 1970. */
export type Enforcement =
  | { readonly mode: "strict" }
  | {
      readonly mode: "observe";
      readonly untilMs: number;
      readonly enforcedClients: ReadonlySet<string>;
      readonly enforcedMethods: ReadonlySet<string>;
    };

export type Policy = {
  readonly roles: ReadonlyMap<string, Rights>;
  /** A tenant's own rows. Each replaces the general row of its role. */
  readonly tenants: ReadonlyMap<string, ReadonlyMap<string, Rights>>;
  readonly enforcement: Enforcement;
  /** Whether the audit trail keeps the values of the fields that change: personal data. */
  readonly keepsAuditValues: boolean;
  readonly issuers: readonly Issuer[];
  /** Null: none. */
  readonly limits: Limits | null;
  /** How many wrong tokens an address may send. Null: as many as it likes. */
  readonly wrongTokens: Quota | null;
};

/** What a caller's rights follow from. */
type RightsHolder = {
  readonly tenant: string | null;
  readonly role: string;
  readonly scope?: Scope | undefined;
};

/** Those of the role, less what the scope leaves out. A role that the policy does not know has no rights. */
export function rightsOf(policy: Policy, { tenant, role, scope }: RightsHolder): Rights {
  const own = tenant === null ? undefined : policy.tenants.get(tenant)?.get(role);
  return narrow(own ?? policy.roles.get(role) ?? NO_RIGHTS, scope);
}

/**
 * Whether a write without If-Match is refused with 428. A
 * present If-Match is always enforced, whatever this says.
 */
export function isEnforced(
  enforcement: Enforcement,
  client: string,
  method: WriteMethod,
  nowMs: number,
): boolean {
  return (
    enforcement.mode === "strict" ||
    nowMs >= enforcement.untilMs ||
    enforcement.enforcedClients.has(client) ||
    enforcement.enforcedMethods.has(method)
  );
}

const closed = { additionalProperties: false };
const named = Type.String({ pattern: NAME_PATTERN });
const ROLE = Type.Object(
  {
    read: Type.Array(Type.Union(FIELD_NAMES.map((name) => Type.Literal(name)))),
    operations: Type.Array(Type.Union(OPERATIONS.map((operation) => Type.Literal(operation)))),
  },
  closed,
);
const ROLES = Type.Record(named, ROLE, closed);
const POLICY = Type.Object(
  {
    roles: ROLES,
    tenants: Type.Optional(Type.Record(named, Type.Object({ roles: ROLES }, closed), closed)),
    issuers: Type.Optional(ISSUERS),
    audit: Type.Optional(Type.Object({ values: Type.Boolean() }, closed)),
    limits: Type.Optional(LIMITS),
    enforcement: Type.Optional(
      Type.Object(
        {
          mode: Type.Union([Type.Literal("strict"), Type.Literal("observe")]),
          until: Type.Optional(Type.Date()),
          enforced_clients: Type.Optional(Type.Array(named)),
          enforced_methods: Type.Optional(
            Type.Array(Type.Union(WRITE_METHODS.map((method) => Type.Literal(method)))),
          ),
        },
        closed,
      ),
    ),
  },
  closed,
);
const PROPERTY_NAMES = [...new Set(propertyNames(POLICY))];

/** The names of a schema's properties, and those of the objects in them. */
function propertyNames({ properties = {}, patternProperties = {} }: TSchema): string[] {
  const inside = Object.values<TSchema>({ ...properties, ...patternProperties });
  return [...Object.keys(properties), ...inside.flatMap(propertyNames)];
}

export type PolicyResult =
  | { readonly ok: true; readonly policy: Policy }
  | { readonly ok: false; readonly faults: readonly string[] };

/** @param document a parsed policy file @returns the policy, or every fault in it, a sentence each */
export function readPolicy(document: unknown): PolicyResult {
  if (!Value.Check(POLICY, document)) return { ok: false, faults: schemaFaults(document) };
  const faults = [
    ...roleFaults(document),
    ...enforcementFaults(document),
    ...limitFaults(document.limits),
    ...issuerFaults(document.issuers, roleNames(document)),
  ];
  if (faults.length > 0) return { ok: false, faults };
  return { ok: true, policy: build(document) };
}

type PolicyDocument = Static<typeof POLICY>;

function build(document: PolicyDocument): Policy {
  const roles = (rows: Static<typeof ROLES>): Map<string, Rights> =>
    new Map(
      Object.entries(rows).map(([role, { read, operations }]) => [
        role,
        { read: new Set(read), operations: new Set(operations) },
      ]),
    );
  const { enforcement } = document;
  return {
    roles: roles(document.roles),
    tenants: new Map(
      Object.entries(document.tenants ?? {}).map(([tenant, own]) => [tenant, roles(own.roles)]),
    ),
    enforcement:
      enforcement?.mode === "observe" && enforcement.until !== undefined
        ? {
            mode: "observe",
            untilMs: enforcement.until.getTime(),
            enforcedClients: new Set(enforcement.enforced_clients),
            enforcedMethods: new Set(enforcement.enforced_methods),
          }
        : { mode: "strict" },
    keepsAuditValues: document.audit?.values ?? false,
    issuers: buildIssuers(document.issuers),
    limits: document.limits === undefined ? null : buildLimits(document.limits),
    wrongTokens: wrongTokensOf(document.limits),
  };
}

function roleNames({ roles, tenants = {} }: PolicyDocument): string[] {
  return [...Object.keys(roles), ...Object.values(tenants).flatMap((own) => Object.keys(own.roles))];
}

function schemaFaults(document: unknown): string[] {
  const faults = new Map<string, string>();
  for (const { path, schema, value, message } of Value.Errors(POLICY, document)) {
    if (faults.has(path)) continue;
    const where = path.slice(1).replaceAll("/", ".") || "the file";
    const words = literals(schema);
    const key = path.slice(path.lastIndexOf("/") + 1);
    if (value === undefined) faults.set(path, `${where} is missing`);
    else if (words.length > 0) {
      const near = typeof value === "string" ? nearest(value, words) : null;
      const hint = near === null ? "" : `; did you mean "${near}"?`;
      faults.set(path, `${where} is ${JSON.stringify(value)}, but must be one of ${words.join(", ")}${hint}`);
    } else if (message === "Unexpected property") {
      const near = nearest(key, PROPERTY_NAMES);
      faults.set(
        path,
        `${where} is unknown${near === null || near === key ? "" : `; did you mean ${near}?`}`,
      );
    } else faults.set(path, `${where}: ${message.toLowerCase()}`);
  }
  return [...faults.values()];
}

function literals(schema: TSchema): string[] {
  return (schema["anyOf"] ?? [])
    .map((option: TSchema) => option["const"])
    .filter((word: unknown) => typeof word === "string");
}

function roleFaults(document: PolicyDocument): string[] {
  const tables: [string, Static<typeof ROLES>][] = [
    ["roles", document.roles],
    ...Object.entries(document.tenants ?? {}).map(([tenant, own]): [string, Static<typeof ROLES>] => [
      `tenants.${tenant}.roles`,
      own.roles,
    ]),
  ];
  return tables.flatMap(([table, rows]) =>
    Object.entries(rows).flatMap(([role, { operations }]) => {
      if (!operations.includes("metrics")) return [];
      if (operations.length > 1) {
        return [
          `${table}.${role}: "metrics" must be the only operation, since its tokens belong to no tenant`,
        ];
      }
      return table === "roles"
        ? []
        : [
            `${table}.${role}: move the role to [roles], since tokens with the operation "metrics" belong to no tenant`,
          ];
    }),
  );
}

function enforcementFaults({ enforcement }: PolicyDocument): string[] {
  if (enforcement?.mode !== "observe") return [];
  const { until } = enforcement;
  if (until === undefined) {
    return [
      'enforcement.until is missing: "observe" is temporary and needs an end date, as in until = 2027-03-31',
    ];
  }
  if (until.getTime() % DAY_MS !== 0)
    return ["enforcement.until must be a date without a time, as in 2027-03-31"];
  return [];
}
