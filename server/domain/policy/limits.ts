import { type Static, Type } from "@sinclair/typebox";
import { NAME_PATTERN } from "./issuer.ts";
import type { Quota } from "./token-bucket.ts";

/** How many requests of one client, or of all clients of one tenant, a server takes. */
export type Quotas = { readonly requests?: Quota; readonly writes?: Quota };

export type Limits = {
  readonly client: Quotas;
  readonly tenant: Quotas;
  /** Those of single clients and tenants. Each replaces the general one. */
  readonly clients: ReadonlyMap<string, Quotas>;
  readonly tenants: ReadonlyMap<string, Quotas>;
};

/** As RateLimit fields, problems and metrics name them. */
export const LIMIT_NAMES = [
  "client-requests",
  "client-writes",
  "tenant-requests",
  "tenant-writes",
  "wrong-tokens",
] as const;
export type LimitName = (typeof LIMIT_NAMES)[number];

/** A limit that a request has to keep. Callers that share a holder share its bucket. */
export type Limit = {
  readonly name: LimitName;
  readonly quota: Quota;
  /** "" where the limit goes by address. */
  readonly tenant: string;
  /** "" also where all clients of the tenant share it. */
  readonly client: string;
};

/** The limits of one request: none, or up to four for a write. */
export function limitsOf(
  { clients, client: anyClient, tenants, tenant: anyTenant }: Limits,
  { client, tenant }: { readonly client: string; readonly tenant: string },
  isWrite: boolean,
): Limit[] {
  const ofClient = clients.get(client) ?? anyClient;
  const ofTenant = tenants.get(tenant) ?? anyTenant;
  const rows: readonly [LimitName, Quota | undefined, string][] = [
    ["client-requests", ofClient.requests, client],
    ["client-writes", isWrite ? ofClient.writes : undefined, client],
    ["tenant-requests", ofTenant.requests, ""],
    ["tenant-writes", isWrite ? ofTenant.writes : undefined, ""],
  ];
  return rows.flatMap(([name, quota, holder]) =>
    quota === undefined ? [] : [{ name, quota, tenant, client: holder }],
  );
}

/**
 * How many wrong tokens an address may send where the policy does not say: many behind one address who mistype or
 * hold old ones stay below it, and valid tokens are never held to it.
 */
export const WRONG_TOKENS: Quota = { perSecond: 20, burst: 200 };
/** Metrics name no address: one who sends wrong tokens chooses it. */
export const WRONG_TOKENS_OF_ADDRESS: Omit<Limit, "quota"> = { name: "wrong-tokens", client: "", tenant: "" };

const closed = { additionalProperties: false };
const QUOTA = Type.Object(
  {
    per_second: Type.Number({ minimum: 0.001, maximum: 1_000_000 }),
    burst: Type.Integer({ minimum: 1, maximum: 1_000_000 }),
  },
  closed,
);

const QUOTAS = Type.Object({ requests: Type.Optional(QUOTA), writes: Type.Optional(QUOTA) }, closed);

/** `unlimited = true` in place of a quota switches the limit off. */
const ADDRESS_QUOTAS = Type.Object(
  { wrong_tokens: Type.Optional(QUOTA), unlimited: Type.Optional(Type.Literal(true)) },
  closed,
);

const ROWS = Type.Record(Type.String({ pattern: NAME_PATTERN }), QUOTAS, closed);
/** The limits of a policy file. */
export const LIMITS = Type.Object(
  {
    client: Type.Optional(QUOTAS),
    tenant: Type.Optional(QUOTAS),
    clients: Type.Optional(ROWS),
    tenants: Type.Optional(ROWS),
    address: Type.Optional(ADDRESS_QUOTAS),
  },
  closed,
);
type LimitsDocument = Static<typeof LIMITS>;

/** What contradicts itself, a sentence each. */
export function limitFaults({ client, tenant, clients, tenants, address }: LimitsDocument = {}): string[] {
  const rows = (table: string, quotas: LimitsDocument["clients"] = {}): [string, Static<typeof QUOTAS>][] =>
    Object.entries(quotas).map(([name, row]) => [`limits.${table}.${name}`, row]);
  const all: [string, Static<typeof QUOTAS> | undefined][] = [
    ["limits.client", client],
    ["limits.tenant", tenant],
    ...rows("clients", clients),
    ...rows("tenants", tenants),
  ];
  return [...all.flatMap(([at, row]) => quotaFaults(at, row)), ...addressFaults(address)];
}

function quotaFaults(at: string, { requests, writes }: Static<typeof QUOTAS> = {}): string[] {
  if (requests === undefined || writes === undefined) return [];
  return (["per_second", "burst"] as const)
    .filter((name) => writes[name] > requests[name])
    .map(
      (name) =>
        `${at}.writes.${name} is ${writes[name]}, more than the ${requests[name]} of ${at}.requests; each write is a request too, so lower the one or raise the other`,
    );
}

function addressFaults(address: LimitsDocument["address"]): string[] {
  if (address === undefined) return [];
  const { wrong_tokens: quota, unlimited } = address;
  if (quota === undefined && unlimited === undefined) {
    return ["limits.address needs wrong_tokens, or unlimited = true, which switches the limit off"];
  }
  if (quota === undefined || unlimited === undefined) return [];
  return ["limits.address: wrong_tokens and unlimited contradict each other; keep one of them"];
}

/** @returns null where wrong tokens are not limited */
export function wrongTokensOf({ address }: LimitsDocument = {}): Quota | null {
  if (address?.unlimited === true) return null;
  return address?.wrong_tokens === undefined ? WRONG_TOKENS : quotaOf(address.wrong_tokens);
}

export function buildLimits({ client, tenant, clients, tenants }: LimitsDocument): Limits {
  const rows = (table: LimitsDocument["clients"] = {}) =>
    new Map(Object.entries(table).map(([name, quotas]) => [name, quotasOf(quotas)]));
  return {
    client: quotasOf(client),
    tenant: quotasOf(tenant),
    clients: rows(clients),
    tenants: rows(tenants),
  };
}

function quotasOf({ requests, writes }: Static<typeof QUOTAS> = {}): Quotas {
  return {
    ...(requests === undefined ? {} : { requests: quotaOf(requests) }),
    ...(writes === undefined ? {} : { writes: quotaOf(writes) }),
  };
}

function quotaOf({ per_second: perSecond, burst }: Static<typeof QUOTA>): Quota {
  return { perSecond, burst };
}
