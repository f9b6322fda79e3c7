import type { FieldName } from "../domain/customer/field-registry.ts";
import { isEnforced, type WriteMethod } from "../domain/policy/policy.ts";
import type { Operation, Rights } from "../domain/policy/rights.ts";
import { type Preconditions, readPreconditions } from "../domain/precondition.ts";
import { flatMap, ok, type Refusal, type Result, refuse } from "../domain/problem.ts";
import { defaultProjection, type Projection, parseFields } from "../domain/projection.ts";
import type { Authority, Call } from "./call.ts";
import { readQuery } from "./request/query.ts";

/**
 * The checks of a customer request. Every operation makes them
 * in this order, and a refusal names the first check that fails:
 *
 *  1. route and method are known                          404, 405        app.ts
 *  2. the caller is authenticated                         401             http/pipeline.ts
 *     its address did not send too many wrong tokens      429             http/limits/caller-limits.ts
 *     the caller is within its limits                     429             http/limits/caller-limits.ts
 *  3. the caller may do this operation                    403             requireOperation
 *  4. PUT, PATCH, DELETE: If-Match is present, not blank  428             requireIfMatch
 *  5. every query parameter is known and in range,
 *     `fields` names registry fields, not too many        400             requireProjection and others
 *  6. the caller may read every field that is named       403             requireReadable
 *     Idempotency-Key is well-formed                      400             readIdempotencyKey
 *     PUT, PATCH: there is no Content-Range               400             requireWholeBody
 *  7. the customer exists in the caller's tenant          404             the store's outcome
 *  8. If-Match is the current entity-tag, and
 *     If-None-Match is not                                412             the store's outcome
 *  9. the body: size, media type, JSON, schema            413, 415, 400, 422
 * 10. apply
 *
 * Checks 1 to 6 touch no customer row. Checks 7, 8 and 10 are one atomic step in the store, which first
 * looks up the Idempotency-Key: the repeated request gets its first outcome again, another request under
 * the key 422. Where the body fails check 9, a read of the row version alone answers 7 and 8 first.
 */

export function requireOperation({ rights }: Authority, operation: Operation): Result<null> {
  if (rights.operations.has(operation)) return ok(null);
  return refuse(
    "forbidden-operation",
    `This token may not ${operation === "history" ? "see the history of" : operation} customers. Use one with the operation \`${operation}\`.`,
  );
}

export function requireIfMatch(
  { headers }: Call,
  { enforcement, client, nowMs }: Authority,
  method: WriteMethod,
): Result<Preconditions> {
  const preconditions = readPreconditions(headers);
  if (preconditions.ifMatch !== null || !isEnforced(enforcement, client, method, nowMs))
    return ok(preconditions);
  return refuse(
    "precondition-required",
    `${method} needs If-Match with the customer's current entity-tag. Read the customer and send its ETag header back, quotes included.`,
  );
}

/**
 * Clients send the same few query strings again and again, and to parse one takes 2 to 3 µs of the 60
 * of a read. The rights are replaced with the policy, and what was parsed under them goes with them.
 */
const parsedQueries = new WeakMap<Rights, Map<string, Result<Projection>>>();
const PARSED_QUERIES_MAX = 1_000;
const PARSED_CHARACTERS_MAX = 128;

/** Checks 5 and 6 of a query that may hold `fields` and nothing else. */
export function requireProjection({ search }: Call, { rights }: Authority): Result<Projection> {
  const parsed = parsedQueries.get(rights) ?? new Map<string, Result<Projection>>();
  const known = parsed.get(search);
  if (known !== undefined) return known;
  const projection = flatMap(readQuery(search, ["fields"]), (query) =>
    projectionOfLists(query.getAll("fields"), rights),
  );
  if (!projection.ok || search.length > PARSED_CHARACTERS_MAX) return projection;
  if (parsed.size >= PARSED_QUERIES_MAX) parsed.clear();
  parsedQueries.set(rights, parsed.set(search, projection));
  return projection;
}

/** @param lists the values of `fields`; none for the default set */
export function projectionOfLists(lists: readonly string[], rights: Rights): Result<Projection> {
  if (lists.length === 0) return ok(defaultProjection(rights.read));
  return flatMap(parseFields(lists, rights.read), (projection) =>
    flatMap(requireReadable(projection.fields, rights), () => ok(projection)),
  );
}

/**
 * A part of a body must not be taken for the whole (RFC 9110, section 14.5). A DELETE has no content that the
 * header could be about.
 */
export function requireWholeBody({ headers }: Call, method: WriteMethod): Result<null> {
  if (method === "DELETE" || !headers.has("content-range")) return ok(null);
  return refuse(
    "malformed-request",
    `${method} with Content-Range is not supported. Send the whole body without Content-Range.`,
  );
}

export function requireReadable(fields: readonly FieldName[], { read }: Rights): Result<null> {
  const forbidden = fields.filter((name) => !read.has(name));
  if (forbidden.length === 0) return ok(null);
  return refuse(
    "forbidden-field",
    `This token may not read ${forbidden.join(", ")}. Leave it out of the request.`,
    { extensions: { forbiddenFields: forbidden } },
  );
}

/** The media types of a JSON body, in lower case. */
export const JSON_TYPES = ["application/json"] as const;

export function customerNotFound(): Refusal {
  return refuse(
    "customer-not-found",
    "There is no customer with this id. Check the id; the customer may have been deleted.",
  );
}
