import { type Static, Type } from "@sinclair/typebox";
import { nearest } from "../text/nearest.ts";

/** Names of tenants, clients and roles: they appear in metric labels, log lines and tables. */
export const NAME_PATTERN = "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$";

/**
 * Signatures by a private key, which the issuer alone has. Never `none`, and never HS256 and its like: there the key
 * that verifies also signs, and a public key taken for such a secret would let anyone sign.
 */
const ALGORITHMS = [
  ...["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"],
  ...["ES256", "ES384", "ES512", "EdDSA", "Ed25519"],
];

/** Where a name comes from: the policy itself, or a claim of the token. */
export type NameRule =
  | { readonly kind: "fixed"; readonly name: string }
  | {
      readonly kind: "claim";
      /** The claim, then members of the objects in it. */
      readonly path: readonly string[];
      /** The name of each value, the first that the token has first; null: the value is the name. */
      readonly names: ReadonlyMap<string, string> | null;
    };

/** Someone else who signs tokens (JWT) that this service accepts. */
export type Issuer = {
  /** Of its table in the policy file. */
  readonly name: string;
  /** `iss` of its tokens, character by character. */
  readonly url: string;
  readonly audience: string;
  readonly algorithms: readonly string[];
  readonly client: NameRule;
  readonly tenant: NameRule;
  readonly role: NameRule;
};

/** Why a token of an issuer is refused (401), for logs and metrics. The answer does not say it. */
export const REFUSAL_REASONS = [
  "too-long",
  "malformed",
  "unknown-issuer",
  "algorithm",
  "type",
  "unknown-key",
  "signature",
  "expired",
  "not-yet-valid",
  "audience",
  "claims",
  "bound-to-key",
] as const;
export type RefusalReason = (typeof REFUSAL_REASONS)[number];

export type RefusedToken = {
  /** Of the policy; null where the token names none of it. */
  readonly issuer: string | null;
  readonly reason: RefusalReason;
};

const closed = { additionalProperties: false };
const named = Type.String({ pattern: NAME_PATTERN });
const text = Type.String({ minLength: 1, maxLength: 512 });
const NAME_RULE = Type.Object(
  {
    value: Type.Optional(named),
    claim: Type.Optional(Type.Union([text, Type.Array(text, { minItems: 1, maxItems: 8 })])),
    values: Type.Optional(Type.Record(text, named)),
  },
  closed,
);
export const ISSUERS = Type.Record(
  named,
  Type.Object(
    {
      issuer: text,
      audience: text,
      algorithms: Type.Array(Type.String(), { minItems: 1 }),
      client: NAME_RULE,
      tenant: NAME_RULE,
      role: NAME_RULE,
    },
    closed,
  ),
  closed,
);
type IssuersDocument = Static<typeof ISSUERS>;

export function buildIssuers(document: IssuersDocument = {}): Issuer[] {
  return Object.entries(document).map(([name, { issuer, audience, algorithms, client, tenant, role }]) => ({
    ...{ name, url: issuer, audience, algorithms },
    ...{ client: nameRule(client), tenant: nameRule(tenant), role: nameRule(role) },
  }));
}

function nameRule({ value, claim, values }: Static<typeof NAME_RULE>): NameRule {
  if (value !== undefined) return { kind: "fixed", name: value };
  return {
    kind: "claim",
    path: typeof claim === "string" ? [claim] : (claim ?? []),
    names: values === undefined ? null : new Map(Object.entries(values)),
  };
}

/** @param roles all of the policy, also those of one tenant alone @returns a sentence each */
export function issuerFaults(document: IssuersDocument = {}, roles: readonly string[]): string[] {
  const seen = new Map<string, string>();
  return Object.entries(document).flatMap(([name, { issuer, algorithms, ...rules }]) => {
    const at = `issuers.${name}`;
    const twin = seen.get(issuer);
    seen.set(issuer, at);
    return [
      ...addressFaults(at, issuer),
      ...(twin === undefined ? [] : [`${at}.issuer is also that of ${twin}; one issuer has one table`]),
      ...algorithms.flatMap((algorithm) => algorithmFaults(at, algorithm)),
      ...ruleFaults(`${at}.client`, rules.client),
      ...ruleFaults(`${at}.tenant`, rules.tenant),
      ...ruleFaults(`${at}.role`, rules.role),
      ...roleFaults(`${at}.role`, rules.role, roles),
    ];
  });
}

function addressFaults(at: string, issuer: string): string[] {
  if (!isTrustedAddress(issuer)) {
    return [`${at}.issuer must be an https address; http is accepted for 127.0.0.1, ::1 and localhost alone`];
  }
  const { username, search, hash } = new URL(issuer);
  if (username === "" && search === "" && hash === "") return [];
  return [`${at}.issuer must have no user, query or fragment`];
}

/** Whether what is fetched there can't be replaced on the way. */
export function isTrustedAddress(text: string): boolean {
  const url = URL.parse(text);
  if (url?.protocol === "https:") return true;
  return url?.protocol === "http:" && /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/.test(url.hostname);
}

function algorithmFaults(at: string, algorithm: string): string[] {
  if (ALGORITHMS.includes(algorithm)) return [];
  if (algorithm.toLowerCase() === "none") {
    return [`${at}.algorithms: "${algorithm}" is never accepted, since anyone can make such a token`];
  }
  if (/^hs\d+$/i.test(algorithm)) {
    return [
      `${at}.algorithms: "${algorithm}" is never accepted, since its key would let this service sign tokens too; let the issuer sign with RS256 or ES256`,
    ];
  }
  const near = nearest(algorithm, ALGORITHMS);
  const hint = near === null ? "" : `; did you mean "${near}"?`;
  return [`${at}.algorithms: "${algorithm}" is unknown; choose from ${ALGORITHMS.join(", ")}${hint}`];
}

function ruleFaults(at: string, { value, claim, values }: Static<typeof NAME_RULE>): string[] {
  if ((value === undefined) === (claim === undefined)) {
    return [`${at} needs one of value, which is the same for all tokens, and claim, which names a claim`];
  }
  if (values === undefined) return [];
  if (value !== undefined) return [`${at}.values belongs to a claim; remove it, or value`];
  const keys = Object.keys(values);
  if (keys.length === 0) return [`${at}.values is empty, so no token would be accepted`];
  // The parsed table has lost the place of such a key, and the first value that a token has decides.
  const digits = keys.filter((key) => keys.length > 1 && /^\d+$/.test(key));
  return digits.map((key) => `${at}.values.${key}: a key must not consist of digits alone`);
}

function roleFaults(
  at: string,
  { value, values = {} }: Static<typeof NAME_RULE>,
  roles: readonly string[],
): string[] {
  const named: [string, string][] = [
    ...(value === undefined ? [] : [[`${at}.value`, value] satisfies [string, string]]),
    ...Object.entries(values).map(([key, role]): [string, string] => [`${at}.values.${key}`, role]),
  ];
  return named
    .filter(([, role]) => !roles.includes(role))
    .map(([where, role]) => {
      const near = nearest(role, roles);
      return `${where} is "${role}", which is no role of this file${near === null ? "" : `; did you mean "${near}"?`}`;
    });
}
