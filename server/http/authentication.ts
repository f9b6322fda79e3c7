import { andThen, type MaybePromise } from "../domain/maybe-promise.ts";
import { type Policy, rightsOf } from "../domain/policy/policy.ts";
import { ok, type Result, refuse } from "../domain/problem.ts";
import type { SignIn } from "../issuers/sign-in.ts";
import type { Caller, TokenStore } from "../storage/tokens/token-store.ts";

/** Looks up a caller by a token of the service. */
export type TokenLookup = Pick<TokenStore, "find">;

/** Who finds a caller by its token: the store its own, the sign-in those of other issuers. */
export type CallerLookup = {
  readonly tokens: TokenLookup;
  readonly signIn: Pick<SignIn, "find">;
};

/** A caller of customer routes. */
export type TenantCaller = Caller & { readonly tenant: string };

/** @returns the token of `Authorization: Bearer <token>` (RFC 6750, section 2.1); null where there is none */
export function tokenIn(authorization: string | null): string | null {
  return /^bearer +([^ ]+)$/i.exec(authorization ?? "")?.[1] ?? null;
}

/**
 * Finds the caller of a token. Unknown, revoked and expired
 * tokens are refused in the same words, so that someone who guesses tokens learns nothing.
 */
export function authenticate(
  { tokens, signIn }: CallerLookup,
  token: string | null,
  nowMs: number,
  address?: string,
): MaybePromise<Result<Caller>> {
  if (token === null) return unauthenticated("Send a token: `Authorization: Bearer <token>`.", "Bearer");
  // The parts of a JWT are joined by dots, which no token of the store has.
  if (token.includes(".")) return signIn.find(token, nowMs);
  return andThen(tokens.find(token, nowMs, address), (caller) =>
    caller === null
      ? unauthenticated(
          "The token is unknown, revoked or expired. Send a valid one.",
          'Bearer error="invalid_token"',
        )
      : ok(caller),
  );
}

export function requireTenant(caller: Caller): Result<TenantCaller> {
  if (hasTenant(caller)) return ok(caller);
  return refuse("forbidden-operation", "This token belongs to no tenant; it reads metrics alone.");
}

/** A tenant's token would read every tenant's name in the labels, whatever its role says. */
export function requireMetricsRole(caller: Caller, policy: Policy): Result<Caller> {
  if (caller.tenant === null && rightsOf(policy, caller).operations.has("metrics")) return ok(caller);
  return refuse("forbidden-operation", "This token may not read metrics.");
}

function hasTenant(caller: Caller): caller is TenantCaller {
  return caller.tenant !== null;
}

/** @param challenge names an error only where a token was sent (RFC 6750, section 3.1) */
function unauthenticated(detail: string, challenge: string): Result<never> {
  return refuse("unauthenticated", detail, { headers: { "www-authenticate": challenge } });
}
