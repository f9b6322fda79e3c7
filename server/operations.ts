import {
  type Call,
  customerNotFound,
  preconditionFailed,
  projectionOfQuery,
  readIdempotencyKey,
  requireIfMatch,
  requireOperation,
  requireProjection,
  requireReadable,
  stillAllowed,
} from "./checks.ts";
import { BodySchema, refuseMembers } from "./domain/body-schema.ts";
import {
  CREATION_BODY,
  type CustomerFields,
  PAGE_LIMIT_DEFAULT,
  PATCH_BODY,
  parseCustomerId,
  REPLACEMENT_BODY,
  SEARCH_BODY,
  storedName,
} from "./domain/customer.ts";
import type { RowVersion } from "./domain/entity-tag.ts";
import type { CustomerStatus, FieldName } from "./domain/field-registry.ts";
import type { Operation, WriteMethod } from "./domain/policy.ts";
import {
  type Expected,
  expectedVersion,
  matchesExpected,
  matchesIfNoneMatch,
} from "./domain/precondition.ts";
import { flatMap, ok, type Refusal, type Result, refuse } from "./domain/problem.ts";
import type { Projection } from "./domain/projection.ts";
import { invalidParameter, parseLimit, parseStatus, readQuery, singleValue } from "./domain/query.ts";
import { openCursor, sealCursor } from "./page-cursor.ts";
import type {
  CustomerStore,
  IdempotencyKey,
  MaybePromise,
  RemoveOutcome,
  StoredCustomer,
  WriteOutcome,
  WriteTarget,
} from "./storage/customer-store.ts";

export type Read =
  | { readonly kind: "customer"; readonly customer: StoredCustomer }
  | { readonly kind: "not-modified"; readonly rowVersion: RowVersion };

export type Listed = {
  readonly kind: "page";
  readonly items: readonly StoredCustomer[];
  readonly next: string | null;
};

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

const JSON_TYPES = ["application/json"] as const;
export const PATCH_TYPES = ["application/merge-patch+json", "application/json"] as const;

const replacementBody = new BodySchema(REPLACEMENT_BODY);
const creationBody = new BodySchema(CREATION_BODY);
const patchBody = new BodySchema(PATCH_BODY);
const searchBody = new BodySchema(SEARCH_BODY);

export function read(store: CustomerStore, call: Call, id: string): MaybePromise<Result<Read>> {
  const permitted = requireOperation(call, "get");
  if (!permitted.ok) return permitted;
  const projection = projectionOfQuery(call);
  if (!projection.ok) return projection;
  const storedId = parseCustomerId(id);
  if (storedId === null) return customerNotFound();
  return andThen(store.read(call.tenant, storedId, projection.value), (customer) => {
    if (customer === null) return customerNotFound();
    return matchesIfNoneMatch(call.headers.get("if-none-match"), customer.rowVersion)
      ? ok({ kind: "not-modified", rowVersion: customer.rowVersion })
      : ok({ kind: "customer", customer });
  });
}

export function list(store: CustomerStore, call: Call): MaybePromise<Result<Listed>> {
  const permitted = requireOperation(call, "list");
  if (!permitted.ok) return permitted;
  const query = readQuery(call.search, ["fields", "limit", "cursor", "status"]);
  if (!query.ok) return query;
  const limit = flatMap(singleValue(query.value, "limit"), parseLimit);
  if (!limit.ok) return limit;
  const status = flatMap(singleValue(query.value, "status"), parseStatus);
  if (!status.ok) return status;
  const cursor = singleValue(query.value, "cursor");
  if (!cursor.ok) return cursor;
  return page(store, call, {
    fields: query.value.getAll("fields"),
    limit: limit.value,
    status: status.value,
    email: null,
    cursor: cursor.value,
  });
}

/** The same as {@link list}, with the filter in the body: personal data stays out of URLs and their logs. */
export async function search(store: CustomerStore, call: Call): Promise<Result<Listed>> {
  const permitted = requireOperation(call, "list");
  if (!permitted.ok) return permitted;
  const query = readQuery(call.search, ["fields"]);
  if (!query.ok) return query;
  const inQuery = query.value.getAll("fields");
  // The query is judged before the body, though the body may name the fields too.
  const queried = requireProjection(call, inQuery);
  if (!queried.ok) return queried;
  const body = flatMap(await call.readJson(JSON_TYPES), (json) => searchBody.read(json));
  const allowed = stillAllowed(call, "list", queried.value);
  if (!allowed.ok) return allowed;
  if (!body.ok) return body;
  const { fields, limit, status, email, cursor } = body.value;
  if (inQuery.length > 0 && fields !== undefined) {
    return invalidParameter("fields", "is given in the query and in the body; give it once");
  }
  return page(store, call, {
    // An empty array is an empty list, as `fields=` is.
    fields: fields === undefined ? inQuery : [[fields].flat().join(",")],
    limit: limit ?? PAGE_LIMIT_DEFAULT,
    status: status ?? null,
    email: email ?? null,
    cursor: cursor ?? null,
  });
}

type PageRequest = {
  readonly fields: readonly string[];
  readonly limit: number;
  readonly status: CustomerStatus | null;
  readonly email: string | null;
  readonly cursor: string | null;
};

function page(store: CustomerStore, call: Call, wanted: PageRequest): MaybePromise<Result<Listed>> {
  const { limit, status, email, cursor } = wanted;
  const filter = { tenant: call.tenant, status, email };
  const after = cursor === null ? null : openCursor(store.cursorKey, cursor, filter);
  if (cursor !== null && after === null) {
    return invalidParameter("cursor", "is not one of this service for this filter; begin without it");
  }
  const projection = requireProjection(call, wanted.fields);
  if (!projection.ok) return projection;
  // Whoever filters by a field learns it.
  const filtered: FieldName[] = [
    ...(status === null ? [] : ["status" as const]),
    ...(email === null ? [] : ["email" as const]),
  ];
  const readable = requireReadable(call, filtered);
  if (!readable.ok) return readable;
  return andThen(store.page({ ...filter, after, limit }, projection.value), ({ items, lastId }) =>
    ok({ kind: "page", items, next: lastId === null ? null : sealCursor(store.cursorKey, lastId, filter) }),
  );
}

export async function create(store: CustomerStore, call: Call): Promise<Result<Created>> {
  const permitted = requireOperation(call, "create");
  if (!permitted.ok) return permitted;
  const projection = projectionOfQuery(call);
  if (!projection.ok) return projection;
  const key = readIdempotencyKey(call.headers.get("idempotency-key"));
  if (!key.ok) return key;
  const body = flatMap(await call.readJson(JSON_TYPES), (json) => creationBody.read(json));
  const allowed = stillAllowed(call, "create", projection.value);
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
  return ok({ kind: "created", id, rowVersion, fields, isReplayed: outcome.kind === "replayed" });
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
      store.replace(target, { name: storedName(name), email }, projection),
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
      store.patch(target, name === undefined ? others : { ...others, name: storedName(name) }, projection),
  });
}

export function remove(store: CustomerStore, call: Call, id: string): Promise<Result<Written>> {
  return write(store, call, id, {
    method: "DELETE",
    operation: "delete",
    readChange: async () => ok(null),
    apply: (target) => store.remove(target),
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
  const allowed = stillAllowed(call, operation, projection.value);
  if (!allowed.ok) return allowed;
  if (!change.ok) return unapplied(change);
  const returned = prefersRepresentation(call.headers.get("prefer")) ? projection.value : NO_FIELDS;
  const outcome = await apply({ tenant: call.tenant, id: storedId, expected }, change.value, returned);
  if (outcome.kind === "missing") return customerNotFound();
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
    client: call.client,
    key,
    digest: Bun.SHA256.hash(JSON.stringify(body), "hex"),
    nowMs: call.nowMs,
  };
}

function pick(customer: Required<CustomerFields>, projection: Projection): CustomerFields {
  return Object.fromEntries(projection.map((field) => [field, customer[field]]));
}

function andThen<T, U>(value: MaybePromise<T>, next: (value: T) => U): MaybePromise<U> {
  return value instanceof Promise ? value.then(next) : next(value);
}
