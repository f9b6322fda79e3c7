import { DAY_MS } from "../../domain/text/iso-time.ts";

/** When a token ends, and from when its caller is notified. In ms since 1970. */
export type TokenExpiry = { readonly atMs: number; readonly noticeFromMs: number };

/** The longest notice: two weeks, as for a certificate. */
export const NOTICE_MS_MAX = 14 * DAY_MS;
/** A token that is made anew every few hours would otherwise always be about to end. */
const NOTICE_SHARE_OF_LIFETIME = 1 / 4;

export function tokenExpiry(createdAtMs: number, expiresAtMs: number | null): TokenExpiry | null {
  if (expiresAtMs === null) return null;
  const noticeMs = Math.min(NOTICE_MS_MAX, (expiresAtMs - createdAtMs) * NOTICE_SHARE_OF_LIFETIME);
  return { atMs: expiresAtMs, noticeFromMs: expiresAtMs - noticeMs };
}

/** @returns whether a reply notifies the caller that its token ends soon */
export function isExpiring(expiry: TokenExpiry | null, nowMs: number): expiry is TokenExpiry {
  return expiry !== null && nowMs >= expiry.noticeFromMs;
}

/** The maximum number of tokens that a notice names. */
const NAMED_MAX = 100;

/** @returns those whose callers are notified now, in their order, at most 100 */
export function expiringOf<
  Token extends { readonly createdAtMs: number; readonly expiresAtMs: number | null },
>(tokens: readonly Token[], nowMs: number): Token[] {
  return tokens
    .filter(({ createdAtMs, expiresAtMs }) => isExpiring(tokenExpiry(createdAtMs, expiresAtMs), nowMs))
    .slice(0, NAMED_MAX);
}

/** A rotated token that is valid, and what is known of the one in its place. */
type Overlap<Token> = {
  readonly token: Token & { readonly expiresAtMs: number | null; readonly lastUsedAtMs: number | null };
  readonly rotatedAtMs: number;
  readonly replacementUsedAtMs: number | null;
};

/**
 * Uses are known to the hour, so one in the hour of the rotation may have been before it and does not count; and where
 * both tokens were used in the same hour, some program may still have the old one.
 *
 * @returns tokens that end soon and are used still, in their order, at most 100
 */
export function stillUsedOf<Token>(overlaps: readonly Overlap<Token>[], nowMs: number): Token[] {
  return overlaps
    .filter(({ token: { expiresAtMs, lastUsedAtMs }, rotatedAtMs, replacementUsedAtMs }) => {
      const isUsed = lastUsedAtMs !== null && lastUsedAtMs > rotatedAtMs;
      return (
        isUsed &&
        lastUsedAtMs >= (replacementUsedAtMs ?? 0) &&
        isExpiring(tokenExpiry(rotatedAtMs, expiresAtMs), nowMs)
      );
    })
    .map(({ token }) => token)
    .slice(0, NAMED_MAX);
}
