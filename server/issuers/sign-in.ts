import { decodeJwt, decodeProtectedHeader, errors, jwtVerify } from "jose";
import { type Claims, holderOf } from "../domain/claims.ts";
import type { MaybePromise } from "../domain/maybe-promise.ts";
import type { Issuer, RefusalReason, RefusedToken } from "../domain/policy/issuer.ts";
import type { Policy } from "../domain/policy/policy.ts";
import { ok, type Refusal, type Result, refuse } from "../domain/problem.ts";
import type { Caller } from "../storage/tokens/token-store.ts";
import { IssuerKeys, type IssuerKeysOptions, type KeySet } from "./issuer-keys.ts";
import { VerifiedTokens } from "./verified-tokens.ts";

/** A request line with its headers may have 16 KiB. */
const TOKEN_CHARACTERS_MAX = 8_192;
/** How far the clocks of issuer and service may differ. */
const CLOCK_SKEW_MS = 60_000;
/** As {@link IssuerKeys} tries again. */
const RETRY_AFTER_SECONDS = "30";
const TOKEN_ID_CHARACTERS = 32;
const PREFIX_CHARACTERS = 12;

type Verified = {
  readonly policy: Policy;
  readonly issuer: string;
  readonly keys: KeySet;
  /** `exp`, in ms since 1970. */
  readonly endMs: number;
  readonly caller: Result<Caller>;
};

type SignInOptions = IssuerKeysOptions & {
  readonly policy: () => Policy;
  /** Called for each 401. It must not throw. */
  readonly onRefused: (refused: RefusedToken) => void;
};

/**
 * Callers by tokens that others sign: JWTs (RFC 7519) of the issuers of the policy. Nothing of a token is believed
 * before its signature; what is read before that only chooses the issuer.
 */
export class SignIn {
  readonly #policy: () => Policy;
  readonly #options: IssuerKeysOptions;
  readonly #onRefused: SignInOptions["onRefused"];
  readonly #verified = new VerifiedTokens<Verified>();
  /** By what decides which keys are fetched, so that a reload keeps them. */
  #keys = new Map<string, IssuerKeys>();

  constructor({ policy, onRefused, ...options }: SignInOptions) {
    this.#policy = policy;
    this.#onRefused = onRefused;
    this.#options = options;
  }

  /** Fetches the keys of all issuers of the policy; at the start, and after the policy was replaced. */
  async refresh(): Promise<void> {
    const before = this.#keys;
    const { issuers } = this.#policy();
    this.#keys = new Map(
      issuers.map((issuer) => {
        const key = keyOf(issuer);
        return [key, before.get(key) ?? new IssuerKeys(issuer, this.#options)];
      }),
    );
    for (const [key, keys] of before) if (!this.#keys.has(key)) keys.stop();
    await Promise.all([...this.#keys.values()].map((keys) => keys.refresh()));
  }

  stop(): void {
    for (const keys of this.#keys.values()) keys.stop();
  }

  /** When the keys of each issuer were fetched, in ms since 1970; 0 where they never were. */
  fetchTimes(): { readonly issuer: string; readonly fetchedAtMs: number }[] {
    return this.#policy().issuers.map((issuer) => ({
      issuer: issuer.name,
      fetchedAtMs: this.#keys.get(keyOf(issuer))?.fetchedAtMs ?? 0,
    }));
  }

  /** How many tokens are remembered. */
  get remembered(): number {
    return this.#verified.size;
  }

  /**
   * @returns the caller, or why there is none: 401 for what is not a valid token of one of the issuers, 403 for one
   *   that names no caller of this policy, 503 while the keys of its issuer were never fetched
   */
  find(token: string, nowMs: number): MaybePromise<Result<Caller>> {
    const policy = this.#policy();
    if (token.length > TOKEN_CHARACTERS_MAX) return this.#refuse("too-long", null);
    const digest = Bun.SHA256.hash(token, "hex");
    const known = this.#verified.get(digest);
    if (known !== undefined) {
      const isOver = nowMs >= known.endMs + CLOCK_SKEW_MS;
      if (!isOver && known.policy === policy && this.#isInForce(known.keys)) return known.caller;
      this.#verified.drop(digest);
      if (isOver) return this.#refuse("expired", known.issuer);
    }
    const issuer = issuerOf(token, policy);
    if ("reason" in issuer) return this.#refuse(issuer.reason, issuer.issuer);
    const keys = this.#keys.get(keyOf(issuer));
    // Of a policy that is in force, and whose keys are about to be fetched.
    if (keys === undefined) return this.#refuse("unknown-key", issuer.name);
    return this.#verify(token, digest, { issuer, keys, policy, nowMs });
  }

  async #verify(
    token: string,
    digest: string,
    { issuer, keys, policy, nowMs }: { issuer: Issuer; keys: IssuerKeys; policy: Policy; nowMs: number },
  ): Promise<Result<Caller>> {
    if (keys.current === null) await keys.refreshForUnknownKey();
    let set = keys.current;
    if (set === null) return UNAVAILABLE;
    let claims = await verifiedClaims(token, issuer, set, nowMs);
    if (claims === "unknown-key") {
      await keys.refreshForUnknownKey();
      // An issuer that could not be asked still has the keys that it had.
      if (keys.current === null || keys.current === set) return this.#refuse(claims, issuer.name);
      set = keys.current;
      claims = await verifiedClaims(token, issuer, set, nowMs);
    }
    if (typeof claims === "string") return this.#refuse(claims, issuer.name);
    if (policy !== this.#policy()) return this.find(token, nowMs);
    const caller = callerOf(claims, issuer, policy);
    this.#verified.keep(digest, {
      policy,
      issuer: issuer.name,
      keys: set,
      endMs: Number(claims["exp"]) * 1000,
      caller,
    });
    return caller;
  }

  #refuse(reason: RefusalReason, issuer: string | null): Refusal {
    this.#onRefused({ reason, issuer });
    return REFUSED;
  }

  #isInForce(set: KeySet): boolean {
    for (const keys of this.#keys.values()) if (keys.current === set) return true;
    return false;
  }
}

function keyOf({ name, url, algorithms }: Issuer): string {
  return JSON.stringify([name, url, algorithms]);
}

/** Types of JWTs that are access tokens: others are signed with the same keys, for other uses. */
const TYPES: readonly unknown[] = [undefined, "jwt", "at+jwt", "application/at+jwt"];

/** @returns the issuer whose keys may verify the token, or why no issuer of the policy makes such tokens */
function issuerOf(token: string, policy: Policy): Issuer | RefusedToken {
  try {
    const { alg = "", typ } = decodeProtectedHeader(token);
    const { iss } = decodeJwt(token);
    const issuer = policy.issuers.find(({ url }) => url === iss);
    if (issuer === undefined) return { issuer: null, reason: "unknown-issuer" };
    if (!issuer.algorithms.includes(alg)) return { issuer: issuer.name, reason: "algorithm" };
    if (!TYPES.includes(typ?.toLowerCase())) return { issuer: issuer.name, reason: "type" };
    return issuer;
  } catch {
    return { issuer: null, reason: "malformed" };
  }
}

/** @returns the claims, or why the token is not valid; with "unknown-key" a newer key set may have its key */
async function verifiedClaims(
  token: string,
  { url, audience, algorithms }: Issuer,
  keys: KeySet,
  nowMs: number,
): Promise<Claims | RefusalReason> {
  try {
    const { payload } = await jwtVerify(token, keys, {
      issuer: url,
      audience,
      algorithms: [...algorithms],
      clockTolerance: CLOCK_SKEW_MS / 1000,
      currentDate: new Date(nowMs),
      requiredClaims: ["exp"],
    });
    // Bound to a key of its holder (RFC 8705, RFC 9449), which a bearer does not prove to have.
    if (payload["cnf"] !== undefined) return "bound-to-key";
    // A text (RFC 7519, section 4.1.2), which jose does not check.
    const { sub = "" }: { sub?: unknown } = payload;
    return typeof sub === "string" ? payload : "claims";
  } catch (error) {
    return reasonOf(error);
  }
}

function reasonOf(error: unknown): RefusalReason {
  if (error instanceof errors.JWKSNoMatchingKey) return "unknown-key";
  if (error instanceof errors.JWTExpired) return "expired";
  if (error instanceof errors.JWTClaimValidationFailed) {
    const { claim, reason } = error;
    if (claim === "nbf" && reason === "check_failed") return "not-yet-valid";
    return claim === "aud" ? "audience" : "claims";
  }
  // "signature" is all that can't be verified, not only by jose's own errors: a key of the issuer may be too short,
  // or of a kind that the runtime lacks; several may match a token without `kid`; `crit` may name an extension.
  return error instanceof errors.JWSInvalid || error instanceof errors.JWTInvalid ? "malformed" : "signature";
}

function callerOf(claims: Claims, issuer: Issuer, policy: Policy): Result<Caller> {
  const holder = holderOf(claims, issuer, policy);
  if (!holder.ok) return holder;
  const { client, tenant } = holder.value;
  // Idempotency keys outlive a token: its successor is one of the same subject, for the same client and tenant.
  const subject = JSON.stringify([issuer.url, claims["sub"] ?? null, client, tenant]);
  const tokenId = `jwt_${Bun.SHA256.hash(subject, "hex").slice(0, TOKEN_ID_CHARACTERS)}`;
  // The audit trail shows so much of it: enough to tell subjects apart, and it names none.
  return ok({ ...holder.value, tokenId, tokenPrefix: tokenId.slice(0, PREFIX_CHARACTERS), expiry: null });
}

/** The same words for each cause, so that someone who tries out tokens learns nothing. */
const REFUSED = refuse(
  "unauthenticated",
  "The token is not one that this service accepts, or it has expired. Get a new one from its issuer.",
  {
    headers: {
      "www-authenticate":
        'Bearer error="invalid_token", error_description="The token is not accepted, or it has expired"',
    },
  },
);
const UNAVAILABLE = refuse(
  "issuer-unavailable",
  "The keys that verify this token could not be fetched from its issuer yet. Try again.",
  { headers: { "retry-after": RETRY_AFTER_SECONDS } },
);
