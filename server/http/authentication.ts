import { ok, type Result, refuse } from "../domain/problem.ts";
import type { Caller } from "../storage/sqlite/token-rows.ts";
import type { TokenStore } from "../storage/sqlite/token-store.ts";

/** Looks up who calls; everything the service knows of a caller hangs on its token. */
export type TokenLookup = Pick<TokenStore, "find">;

/**
 * `Authorization: Bearer <token>` (RFC 6750, section 2.1). Unknown, revoked and expired tokens are refused in the
 * same words: which of them it was is nobody's business.
 */
export function authenticate(
  tokens: TokenLookup,
  authorization: string | null,
  nowMs: number,
): Result<Caller> {
  const token = /^bearer +([^ ]+)$/i.exec(authorization ?? "")?.[1];
  if (token === undefined) return unauthenticated("Send a token: `Authorization: Bearer <token>`.");
  const caller = tokens.find(token, nowMs);
  if (caller === null) return unauthenticated("The token is unknown, revoked or expired. Send a valid one.");
  return ok(caller);
}

function unauthenticated(detail: string): Result<never> {
  return refuse("unauthenticated", detail, { headers: { "www-authenticate": "Bearer" } });
}
