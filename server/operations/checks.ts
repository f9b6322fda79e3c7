import { formatEntityTag, type RowVersion } from "../domain/entity-tag.ts";
import type { FieldName } from "../domain/field-registry.ts";
import type { MaybePromise } from "../domain/maybe-promise.ts";
import {
  type Enforcement,
  isEnforced,
  type Operation,
  type Rights,
  type WriteMethod,
} from "../domain/policy.ts";
import { diagnose, readIfMatch } from "../domain/precondition.ts";
import { flatMap, ok, type Refusal, type Result, refuse } from "../domain/problem.ts";
import { defaultProjection, forbiddenFields, type Projection, parseFields } from "../domain/projection.ts";
import { readQuery } from "./query.ts";

/**
 * What a customer request may do, as the list of its checks. The order is the same everywhere, and a refusal
 * names the first check that fails:
 *
 *  1. route and method are known                          404, 405        http/routes.ts
 *  2. the caller is authenticated                         401             http/authentication.ts
 *  3. the role may do this operation                      403             requireOperation
 *  4. PUT, PATCH, DELETE: If-Match is there, not blank    428             requireIfMatch
 *  5. every query parameter is known and in range,
 *     `fields` names registry fields, not too many        400             requireProjection and others
 *  6. the role may read every field that is named         403             requireReadable
 *  7. the customer exists in the caller's tenant          404             the store's outcome
 *  8. PUT, PATCH, DELETE: If-Match is the current tag     412             the store's outcome
 *  9. the body: size, media type, JSON, schema            413, 415, 400, 422
 * 10. apply
 *
 * Checks 1 to 6 touch no customer row. Checks 7, 8 and 10 are one atomic step in the store; where the body
 * fails check 9, a read of the row version alone answers 7 and 8 first.
 */
export type Call = {
  readonly tenant: string;
  readonly client: string;
  readonly tokenId: string;
  readonly rights: Rights;
  readonly enforcement: Enforcement;
  readonly nowMs: number;
  readonly headers: Headers;
  /** The query string, without its question mark. */
  readonly search: string;
  /** Reads the body as JSON of one of these media types; may be called once. */
  readonly readJson: (mediaTypes: readonly string[]) => Promise<Result<unknown>>;
  /** What the caller may do now, or why it is nobody any more. */
  readonly currentRights: () => MaybePromise<Result<Rights>>;
};

/** The media types of a body that is JSON and nothing further. */
export const JSON_TYPES = ["application/json"] as const;

export function requireOperation(call: Pick<Call, "rights">, operation: Operation): Result<null> {
  if (call.rights.operations.has(operation)) return ok(null);
  return refuse("forbidden-operation", `The role of this token may not ${operation} customers.`);
}

/**
 * Checks 2, 3 and 6 again, once the body is there: it may take long to come, and the token may have been revoked or
 * the policy changed meanwhile.
 */
export async function stillAllowed(
  call: Call,
  operation: Operation,
  projection: Projection,
): Promise<Result<null>> {
  const rights = await call.currentRights();
  if (!rights.ok) return rights;
  return flatMap(requireOperation({ rights: rights.value }, operation), () =>
    requireReadable({ rights: rights.value }, projection),
  );
}

/** @returns the trimmed If-Match; null where it is absent or blank and a rollout still allows that */
export function requireIfMatch(call: Call, method: WriteMethod): Result<string | null> {
  const ifMatch = readIfMatch(call.headers.get("if-match"));
  if (ifMatch !== null || !isEnforced(call.enforcement, call.client, method, call.nowMs)) return ok(ifMatch);
  return refuse(
    "precondition-required",
    `${method} needs If-Match with the customer's current entity-tag. Read the customer and send its ETag header back, quotes included.`,
  );
}

export function requireProjection(call: Call, lists: readonly string[]): Result<Projection> {
  if (lists.length === 0) return ok(defaultProjection(call.rights.read));
  const projection = parseFields(lists, call.rights.read);
  if (!projection.ok) return projection;
  return flatMap(requireReadable(call, projection.value), () => projection);
}

/** The most query strings whose projections are kept for one set of rights. */
const KEPT_PROJECTIONS_MAX = 1_000;
/** Clients send the same few query strings again and again. Rights are replaced with the policy, and these with them. */
const keptProjections = new WeakMap<Rights, Map<string, Result<Projection>>>();

/** Checks 5 and 6 for a query that may hold `fields` and nothing else. */
export function projectionOfQuery(call: Call): Result<Projection> {
  let kept = keptProjections.get(call.rights);
  if (kept === undefined) {
    kept = new Map();
    keptProjections.set(call.rights, kept);
  }
  const known = kept.get(call.search);
  if (known !== undefined) return known;
  const projection = flatMap(readQuery(call.search, ["fields"]), (query) =>
    requireProjection(call, query.getAll("fields")),
  );
  if (kept.size >= KEPT_PROJECTIONS_MAX) kept.clear();
  if (projection.ok) kept.set(call.search, projection);
  return projection;
}

export function requireReadable(call: Pick<Call, "rights">, fields: readonly FieldName[]): Result<null> {
  const forbidden = forbiddenFields(fields, call.rights.read);
  if (forbidden.length === 0) return ok(null);
  return refuse("forbidden-field", `The role of this token may not read ${forbidden.join(", ")}.`, {
    extensions: { forbiddenFields: forbidden },
  });
}

export function customerNotFound(): Refusal {
  return refuse("customer-not-found", "There is no customer with this id.");
}

const SHOWN_IF_MATCH_MAX = 256;

export function preconditionFailed(ifMatch: string | null, current: RowVersion): Refusal {
  // Without If-Match any version matches, so a stale outcome always has one.
  const received = ifMatch ?? "";
  const { kind, explanation } = diagnose(received, current);
  return refuse("precondition-failed", explanation, {
    extensions: { receivedIfMatch: received.slice(0, SHOWN_IF_MATCH_MAX), diagnosis: kind },
    headers: { etag: formatEntityTag(current) },
  });
}

export function readIdempotencyKey(header: string | null): Result<string | null> {
  if (header === null || /^[\x21-\x7e]{1,255}$/.test(header)) return ok(header);
  return refuse(
    "invalid-idempotency-key",
    "Idempotency-Key must be one value of 1 to 255 visible ASCII characters.",
  );
}
