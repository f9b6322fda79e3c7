import { type Static, Type } from "@sinclair/typebox";
import type { Quota } from "./token-bucket.ts";

/** How many requests of one client, or of all clients of one tenant, a server takes. */
type Quotas = { readonly requests?: Quota; readonly writes?: Quota };

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

/** The quotas of a policy file. */
export const QUOTAS = Type.Object({ requests: Type.Optional(QUOTA), writes: Type.Optional(QUOTA) }, closed);

/** The quota of wrong tokens of a policy file. */
export const ADDRESS_QUOTAS = Type.Object({ wrong_tokens: QUOTA }, closed);

export function quotasOf({ requests, writes }: Static<typeof QUOTAS> = {}): Quotas {
  return {
    ...(requests === undefined ? {} : { requests: quotaOf(requests) }),
    ...(writes === undefined ? {} : { writes: quotaOf(writes) }),
  };
}

export function quotaOf({ per_second: perSecond, burst }: Static<typeof QUOTA>): Quota {
  return { perSecond, burst };
}
