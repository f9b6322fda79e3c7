import {
  CREATION_BODY,
  type CustomerFields,
  PATCH_BODY,
  REPLACEMENT_BODY,
  storedName,
} from "../domain/customer.ts";
import { parseCustomerId } from "../domain/customer-id.ts";
import type { RowVersion } from "../domain/entity-tag.ts";
import type { Operation, WriteMethod } from "../domain/policy.ts";
import { type Expected, expectedVersion, matchesExpected } from "../domain/precondition.ts";
import { flatMap, ok, type Refusal, type Result, refuse } from "../domain/problem.ts";
import type { Projection } from "../domain/projection.ts";
import type {
  CustomerStore,
  IdempotencyKey,
  RemoveOutcome,
  WriteOutcome,
  WriteTarget,
} from "../storage/customer-store.ts";
import { BodySchema, refuseMembers } from "./body-schema.ts";
import {
  type Call,
  customerNotFound,
  JSON_TYPES,
  preconditionFailed,
  projectionOfQuery,
  readIdempotencyKey,
  requireIfMatch,
  requireOperation,
  stillAllowed,
} from "./checks.ts";

export type Created = {
  readonly kind: "created";
  readonly id: string;
  readonly rowVersion: RowVersion;
  readonly fields: CustomerFields;
  readonly isReplayed: boolean;
};

export type Written = {
  readonly kind: "written";
  /** Null after a DELETE: nothing is left to tag. */
  readonly rowVersion: RowVersion | null;
  /** The body, where the client prefers one. */
  readonly fields: CustomerFields | null;
  /** When a write without If-Match was let pass: until when that is so. */
  readonly allowedUntilMs: number | null;
};

export const PATCH_TYPES = ["application/merge-patch+json", "application/json"] as const;

const replacementBody = new BodySchema(REPLACEMENT_BODY);
const creationBody = new BodySchema(CREATION_BODY);
const patchBody = new BodySchema(PATCH_BODY);

export async function create(store: CustomerStore, call: Call): Promise<Result<Created>> {
  const permitted = requireOperation(call, "create");
  if (!permitted.ok) return permitted;
  const projection = projectionOfQuery(call);
  if (!projection.ok) return projection;
  const key = readIdempotencyKey(call.headers.get("idempotency-key"));
  if (!key.ok) return key;
  const body = flatMap(await call.readJson(JSON_TYPES), (json) => creationBody.read(json));
  const allowed = await stillAllowed(call, "create", projection.value);
  if (!allowed.ok) return allowed;
  if (!body.ok) return body;
  const { email, status = "active" } = body.value;
  const customer = { name: storedName(body.value.name), email, status };
  const idempotency = key.value === null ? null : idempotencyKey(call, key.value, Object.values(customer));
  const outcome = await store.create(call.tenant, customer, call.nowMs, idempotency);
  if (outcome.kind === "key-reused") {
    return refuse(
      "idempotency-key-reused",
      "This Idempotency-Key came with a different body within the last 24 hours. Send a new key for a new customer.",
    );
  }
  const { id, rowVersion } = outcome;
  // Not read back: what was stored is what was sent, also when an earlier request made it.
  const fields = pick({ id, ...customer }, projection.value);
  return ok({ kind: "created", id, rowVersion, fields, isReplayed: outcome.isReplayed });
}

export function replace(store: CustomerStore, call: Call, id: string): Promise<Result<Written>> {
  return write(store, call, id, {
    method: "PUT",
    operation: "replace",
    readChange: async (storedId) =>
      flatMap(await call.readJson(JSON_TYPES), (json) =>
        flatMap(replacementBody.read(json), (body) => withoutId(body, storedId)),
      ),
    apply: (target, { name, email }, projection) =>
      store.replace(target, { name: storedName(name), email }, projection, null),
  });
}

export function patch(store: CustomerStore, call: Call, id: string): Promise<Result<Written>> {
  return write(store, call, id, {
    method: "PATCH",
    operation: "patch",
    readChange: async (storedId) =>
      flatMap(await call.readJson(PATCH_TYPES), (json) =>
        flatMap(patchBody.read(json), (body) => withoutId(body, storedId)),
      ),
    apply: (target, { name, ...others }, projection) =>
      store.patch(
        target,
        name === undefined ? others : { ...others, name: storedName(name) },
        projection,
        null,
      ),
  });
}

export function remove(store: CustomerStore, call: Call, id: string): Promise<Result<Written>> {
  return write(store, call, id, {
    method: "DELETE",
    operation: "delete",
    readChange: async () => ok(null),
    apply: (target) => store.remove(target, null),
  });
}

type Write<Change> = {
  readonly method: WriteMethod;
  readonly operation: Operation;
  readonly readChange: (storedId: string) => Promise<Result<Change>>;
  readonly apply: (
    target: WriteTarget,
    change: Change,
    projection: Projection,
  ) => Promise<WriteOutcome | RemoveOutcome>;
};

/** PUT, PATCH and DELETE: one list of checks for every write. */
async function write<Change>(
  store: CustomerStore,
  call: Call,
  id: string,
  { method, operation, readChange, apply }: Write<Change>,
): Promise<Result<Written>> {
  const permitted = requireOperation(call, operation);
  if (!permitted.ok) return permitted;
  const ifMatch = requireIfMatch(call, method);
  if (!ifMatch.ok) return ifMatch;
  const projection = projectionOfQuery(call);
  if (!projection.ok) return projection;
  const storedId = parseCustomerId(id);
  if (storedId === null) return customerNotFound();
  const expected: Expected = ifMatch.value === null ? "any" : expectedVersion(ifMatch.value);
  /** Checks 7 and 8 for a write that will not be applied; only then may the body's own refusal speak. */
  const unapplied = async (refusal: Refusal | null): Promise<Refusal> => {
    const current = await store.rowVersion(call.tenant, storedId);
    if (current === null) return customerNotFound();
    if (refusal !== null && matchesExpected(expected, current)) return refusal;
    return preconditionFailed(ifMatch.value, current);
  };
  // An If-Match that no version can equal needs no body: it is 404 or 412 whatever the body is.
  if (expected === "unmatchable") return unapplied(null);
  const change = await readChange(storedId);
  const allowed = await stillAllowed(call, operation, projection.value);
  if (!allowed.ok) return allowed;
  if (!change.ok) return unapplied(change);
  const returned = prefersRepresentation(call.headers.get("prefer")) ? projection.value : NO_FIELDS;
  const outcome = await apply(
    { tenant: call.tenant, id: storedId, expected: expected === "any" ? { anyExcept: [] } : expected },
    change.value,
    returned,
  );
  if (outcome.kind === "missing") return customerNotFound();
  if (outcome.kind === "key-reused") throw new Error("a write without a key met one");
  if (outcome.kind === "stale") return preconditionFailed(ifMatch.value, outcome.rowVersion);
  return ok({
    kind: "written",
    rowVersion: outcome.kind === "removed" ? null : outcome.rowVersion,
    fields: outcome.kind === "applied" && returned !== NO_FIELDS ? outcome.fields : null,
    allowedUntilMs:
      expected === "any" && call.enforcement.mode === "observe" ? call.enforcement.untilMs : null,
  });
}

/** What a write without a body in its answer reads back: nothing. Not a projection of a request, which is never empty. */
const NO_FIELDS: Projection = [];

/** `id` in a body is tolerated when it is the path's: what was read can be sent back as it is. */
function withoutId<Body extends { id?: string }>(body: Body, storedId: string): Result<Omit<Body, "id">> {
  const { id, ...rest } = body;
  if (id === undefined || id.toLowerCase() === storedId) return ok(rest);
  return refuseMembers([{ pointer: "/id", detail: "is not the id in the path; an id can't be changed" }]);
}

/** `Prefer: return=representation` (RFC 7240, section 4.2). Of several `return` preferences the first counts. */
function prefersRepresentation(prefer: string | null): boolean {
  const preference = /(?:^|[,;])[ \t]*return[ \t]*=[ \t]*"?([a-z]*)/i.exec(prefer ?? "")?.[1];
  return preference?.toLowerCase() === "representation";
}

function idempotencyKey(call: Call, key: string, body: readonly string[]): IdempotencyKey {
  return {
    tokenId: call.tokenId,
    key,
    digest: Bun.SHA256.hash(JSON.stringify(body), "hex"),
    nowMs: call.nowMs,
  };
}

function pick(customer: Required<CustomerFields>, projection: Projection): CustomerFields {
  return Object.fromEntries(projection.map((field) => [field, customer[field]]));
}
