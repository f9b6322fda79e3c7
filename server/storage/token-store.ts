import type { MaybePromise } from "../domain/maybe-promise.ts";

/** What a token carries. A token without a tenant is for metrics alone. */
export type TokenHolder = {
  readonly client: string;
  readonly role: string;
  readonly tenant: string | null;
};

/** Who calls. */
export type Caller = TokenHolder & {
  /** Names the token for as long as it exists. Not secret, and not shown to anyone else. */
  readonly tokenId: string;
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
  readonly revokedAtMs: number | null;
};

export type CreatedToken = {
  /** The token itself, which is shown this once. */
  readonly token: string;
  /** Whether no token and no customer of this tenant existed before. False for a token without a tenant. */
  readonly isTenantNew: boolean;
};

export type RevokeOutcome =
  | { readonly kind: "revoked"; readonly token: TokenRecord }
  | { readonly kind: "missing" }
  | { readonly kind: "ambiguous"; readonly tokens: readonly TokenRecord[] };

/**
 * Bearer tokens: made here, shown once, kept as SHA-256 digests. An engine keeps every rule of
 * token-store.contract.ts, and fails with StoreUnavailable when it cannot answer.
 */
export interface TokenStore {
  /**
   * A token that was revoked, by any process, is refused at the next request.
   *
   * @returns the caller; null for what is no token, or an unknown, revoked or expired one
   */
  find(token: string, nowMs: number): MaybePromise<Caller | null>;
  /** @param expiresAtMs null: it holds until it is revoked */
  create(holder: TokenHolder, nowMs: number, expiresAtMs: number | null): Promise<CreatedToken>;
  /** In the order of creation. */
  list(): MaybePromise<readonly TokenRecord[]>;
  /** @param text the first characters of a token, as listed, or the whole token */
  revoke(text: string, nowMs: number): Promise<RevokeOutcome>;
}
