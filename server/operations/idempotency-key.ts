import type { MaybePromise } from "../domain/maybe-promise.ts";
import { trimBlanks } from "../domain/precondition.ts";
import { ok, type Refusal, type Result, refuse } from "../domain/problem.ts";
import type { Projection } from "../domain/projection.ts";
import type { CustomerStore, IdempotencyKey } from "../storage/customers/customer-store.ts";
import type { Authority } from "./call.ts";

/**
 * Reads Idempotency-Key: 1 to 255 visible ASCII characters, bare or as the quoted string of the IETF draft
 * (draft-ietf-httpapi-idempotency-key-header). Both forms are one key.
 *
 * @returns null where the header is absent
 */
export function readIdempotencyKey(headers: Pick<Headers, "get">): Result<string | null> {
  const header = headers.get("idempotency-key");
  if (header === null) return ok(null);
  const value = trimBlanks(header);
  const key = value.startsWith('"') ? unquote(value) : value;
  if (/^[\x21-\x7e]{1,255}$/.test(key)) return ok(key);
  return refuse(
    "invalid-idempotency-key",
    "Idempotency-Key is not one value of 1 to 255 visible ASCII characters. Send one key, for instance a new UUID for each write.",
  );
}

/** @returns the content of a string (RFC 9651, section 3.3.3), or "" where it is not a whole one */
function unquote(text: string): string {
  const inside = /^"((?:[^"\\]|\\["\\])*)"$/.exec(text)?.[1] ?? "";
  return inside.replace(/\\(.)/g, "$1");
}

/**
 * The key as the store keeps it, with a digest of all that decides the outcome.
 *
 * @param request method, id, preconditions, and the body as parsed
 * @param projection what the answer shows, so that another `fields` or `Prefer` is another request.
 *   The default set is not spelled out: it is the same request after the policy has changed.
 */
export function keyOf(
  { tokenId, nowMs }: Authority,
  key: string | null,
  projection: Projection,
  request: readonly unknown[],
): IdempotencyKey | null {
  if (key === null) return null;
  const shown = projection.kind === "named" ? projection.fields : projection.kind;
  return { tokenId, key, digest: Bun.SHA256.hash(JSON.stringify([...request, shown]), "hex"), nowMs };
}

/**
 * The answer to a body that check 9 refuses: no accepted request had such a
 * body, so under a used key this is another request, and the key comes first.
 */
export async function keyReusedOr(
  store: CustomerStore,
  { tokenId, nowMs }: Authority,
  key: string | null,
  otherwise: () => MaybePromise<Refusal>,
): Promise<Refusal> {
  return key !== null && (await store.isKeyUsed({ tokenId, key, nowMs })) ? keyReused() : otherwise();
}

export function keyReused(): Refusal {
  return refuse(
    "idempotency-key-reused",
    "This Idempotency-Key belongs to a different request of the last 24 hours. Send a new key with a new request.",
  );
}
