import type { MaybePromise } from "../../domain/maybe-promise.ts";
import type { Scope } from "../../domain/policy/scope.ts";
import type { TokenExpiry } from "./token-expiry.ts";

/** What a token carries. A token without a tenant is for metrics alone. */
export type TokenHolder = {
  readonly client: string;
  readonly role: string;
  readonly tenant: string | null;
  /** Left out: the token may do all that its role may. */
  readonly scope?: Scope | undefined;
};

/** Who calls. */
export type Caller = TokenHolder & {
  /**
   * Names the token, and those that it was rotated into, for as long as one
   * of them exists. Not secret, and not shown to anyone else.
   */
  readonly tokenId: string;
  /** The part of the token that lists show. */
  readonly tokenPrefix: string;
  readonly expiry: TokenExpiry | null;
};

/**
 * A token as it is listed: never the token itself, of which only a digest is kept. Times in ms since 1970.
 */
export type TokenRecord = TokenHolder & {
  readonly prefix: string;
  readonly createdAtMs: number;
  readonly expiresAtMs: number | null;
  /** To the hour, and never before the creation. */
  readonly lastUsedAtMs: number | null;
  /** The network of that use, as {@link networkOf} shortens an address; null where it is unknown. */
  readonly lastUsedFrom: string | null;
  /** The first characters of the token that it was rotated into last. */
  readonly replacedBy: string | null;
  readonly revokedAtMs: number | null;
};

type CreatedToken = {
  /** The token itself, which is shown this once. */
  readonly token: string;
  /** Whether no token and no customer of this tenant existed before. False for a token without a tenant. */
  readonly isTenantNew: boolean;
};

export type RevokeOutcome =
  | { readonly kind: "revoked"; readonly token: TokenRecord }
  | { readonly kind: "missing" }
  | { readonly kind: "ambiguous"; readonly tokens: readonly TokenRecord[] };

export type RotationTerms = {
  /** For how long the old token stays valid, unless it ends before. */
  readonly overlapMs: number;
  /** For how long the new one is: null until it is revoked, "same" as long as the old one was to be. */
  readonly lifetimeMs: number | null | "same";
};

/** Why a text names no one token. */
export type NotOneToken = Exclude<RevokeOutcome, { readonly kind: "revoked" }>;

export type Rotated = {
  readonly kind: "rotated";
  readonly made: TokenRecord;
  readonly replaced: TokenRecord;
};

/** `token` is the new one itself, which is shown this once. */
type RotateOutcome = (Rotated & { readonly token: string }) | NotOneToken;

/**
 * Bearer tokens: made here, shown once, kept as SHA-256 digests. An engine keeps every rule of
 * token-store.contract.ts, and fails with StoreUnavailable when it cannot answer.
 */
export interface TokenStore {
  /**
   * A token that was revoked, by any process, is refused at the next request.
   *
   * @param address where the request came from; noted for the first use in an hour
   * @returns the caller; null for what is no token, or an unknown, revoked or expired one
   */
  find(token: string, nowMs: number, address?: string): MaybePromise<Caller | null>;
  /** @param expiresAtMs null: it holds until it is revoked */
  create(holder: TokenHolder, nowMs: number, expiresAtMs: number | null): Promise<CreatedToken>;
  /** In the order of creation. */
  list(): MaybePromise<readonly TokenRecord[]>;
  /** Valid tokens whose end is near enough for a notice, and that no other has replaced; the soonest first. */
  expiring(nowMs: number): MaybePromise<readonly TokenRecord[]>;
  /** Rotated tokens in the last quarter of their overlap whose holder has not changed to the new one; the soonest end first. */
  stillUsed(nowMs: number): MaybePromise<readonly TokenRecord[]>;
  /** @param text the first characters of a token, as listed, or the whole token */
  revoke(text: string, nowMs: number): Promise<RevokeOutcome>;
  /**
   * Makes a token for the holder of another one, which ends after the overlap: both in one step. The new one
   * takes over the idempotency keys, so a write that is repeated with it is not done twice.
   *
   * @param text as for revoke; an expired token may be rotated, a revoked one may not
   */
  rotate(text: string, terms: RotationTerms, nowMs: number): Promise<RotateOutcome>;
}
