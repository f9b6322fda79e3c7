import type { WriteOrigin } from "../domain/audit/audit-entry.ts";
import type { CustomerChanges, CustomerFields } from "../domain/customer/customer.ts";
import { parseCustomerId } from "../domain/customer/customer-id.ts";
import { FIELD_NAMES, type FieldName } from "../domain/customer/field-registry.ts";
import type { RowVersion } from "../domain/entity-tag.ts";
import { pick } from "../domain/pick.ts";
import type { WriteMethod } from "../domain/policy/policy.ts";
import type { Operation } from "../domain/policy/rights.ts";
import { diagnose, expectedVersion, failedPrecondition, type Preconditions } from "../domain/precondition.ts";
import { ok, type Refusal, type Result } from "../domain/problem.ts";
import { NO_BODY, type Projection, projectionOf } from "../domain/projection.ts";
import type {
  CustomerStore,
  IdempotencyKey,
  RemoveOutcome,
  WriteOutcome,
  WriteTarget,
} from "../storage/customers/customer-store.ts";
import type { Authority, Call } from "./call.ts";
import {
  customerNotFound,
  requireIfMatch,
  requireOperation,
  requireProjection,
  requireWholeBody,
} from "./checks.ts";
import { preconditionFailed } from "./failed-precondition.ts";
import { keyOf, keyReused, keyReusedOr, readIdempotencyKey } from "./idempotency-key.ts";
import type { RefusalTrail } from "./refusal-trail.ts";
import { prefersRepresentation } from "./request/prefer.ts";

export type WriteStores = { readonly customers: CustomerStore; readonly trail: RefusalTrail };

/** PUT, PATCH or DELETE of one customer: what its headers and its query say. */
export type ConditionalWrite = {
  readonly method: WriteMethod;
  readonly call: Call;
  /** As looked up with the headers, or again after the body. It decides. */
  readonly authority: Authority;
  readonly preconditions: Preconditions;
  readonly target: WriteTarget;
  /** What the answer shows: nothing without `Prefer: return=representation`. */
  readonly projection: Projection;
  readonly key: string | null;
  readonly origin: WriteOrigin;
};

export type Written = {
  /** Null after a DELETE: nothing is left to tag. */
  readonly rowVersion: RowVersion | null;
  /** The body, where the client prefers one. */
  readonly fields: CustomerFields | null;
  /** Where a rollout allowed a write without If-Match: until when it does. */
  readonly allowedUntilMs: number | null;
  /** Whether this is the outcome of an earlier request under the same Idempotency-Key. */
  readonly isReplayed: boolean;
};

const OPERATION_OF = { PUT: "replace", PATCH: "patch", DELETE: "delete" } as const satisfies Record<
  WriteMethod,
  Operation & WriteOrigin["operation"]
>;

/**
 * Checks 3 to 6 of a write, and whether the id can be one (7). An operation makes them twice:
 * before it reads the body, to refuse early, and afterwards with a fresh authority, which decides.
 */
export function checkWrite(
  call: Call,
  authority: Authority,
  method: WriteMethod,
  id: string,
): Result<ConditionalWrite> {
  const permitted = requireOperation(authority, OPERATION_OF[method]);
  if (!permitted.ok) return permitted;
  const preconditions = requireIfMatch(call, authority, method);
  if (!preconditions.ok) return preconditions;
  const projection = requireProjection(call, authority);
  if (!projection.ok) return projection;
  const key = readIdempotencyKey(call.headers);
  if (!key.ok) return key;
  const whole = requireWholeBody(call, method);
  if (!whole.ok) return whole;
  const storedId = parseCustomerId(id);
  if (storedId === null) return customerNotFound();
  const { client, tokenPrefix, keepsValues } = authority;
  const who = { client, tokenPrefix, requestId: call.requestId, keepsValues };
  const isWithoutIfMatch = preconditions.value.ifMatch === null;
  return ok({
    method,
    call,
    authority,
    preconditions: preconditions.value,
    target: { tenant: authority.tenant, id: storedId, expected: expectedVersion(preconditions.value) },
    projection: prefersRepresentation(call.headers.get("prefer")) ? projection.value : NO_BODY,
    key: key.value,
    origin: { ...who, operation: OPERATION_OF[method], isWithoutIfMatch },
  });
}

/** The key and checks 7 and 8 of a write whose body fails check 9: they come first. */
export function refuseBody(
  { customers, trail }: WriteStores,
  { call, authority, key, target, preconditions }: ConditionalWrite,
  refusal: Refusal,
): Promise<Refusal> {
  return keyReusedOr(customers, authority, key, async () => {
    const current = await customers.rowVersion(target.tenant, target.id);
    if (current === null) return customerNotFound();
    if (failedPrecondition(preconditions, current) === null) return refusal;
    const diagnosis = diagnose(preconditions, current);
    return preconditionFailed(trail, call, target.id, { authority, preconditions, diagnosis, current });
  });
}

/** @param sent the fields that the body sets; null for a DELETE */
export function idempotencyKeyOf(
  write: ConditionalWrite,
  sent: CustomerChanges | null,
): IdempotencyKey | null {
  const { method, authority, preconditions, target, projection, key } = write;
  const { ifMatch, ifNoneMatch } = preconditions;
  return keyOf(authority, key, projection, [method, target.id, ifMatch, ifNoneMatch, sentValues(sent)]);
}

/** The answer to a write that the store has judged: applied, or refused by check 7 or 8 or for its key. */
export async function resultOf(
  stores: WriteStores,
  write: ConditionalWrite,
  sent: CustomerChanges | null,
  outcome: WriteOutcome | RemoveOutcome,
): Promise<Result<Written>> {
  if (outcome.kind === "missing") return customerNotFound();
  if (outcome.kind === "key-reused") return keyReused();
  if (outcome.kind === "stale") return refuseStale(stores, write, sent, outcome.rowVersion);
  const { preconditions, authority, projection } = write;
  const { enforcement } = authority;
  const allowedUntilMs =
    preconditions.ifMatch === null && enforcement.mode === "observe" ? enforcement.untilMs : null;
  const { isReplayed } = outcome;
  if (outcome.kind === "removed") return ok({ rowVersion: null, fields: null, allowedUntilMs, isReplayed });
  // A replayed outcome may hold a field that the policy has
  // hidden since, and none of a customer that was deleted.
  const fields =
    projection.kind === "none" || outcome.fields === null ? null : pick(outcome.fields, projection);
  return ok({ rowVersion: outcome.rowVersion, fields, allowedUntilMs, isReplayed });
}

async function refuseStale(
  { customers, trail }: WriteStores,
  write: ConditionalWrite,
  sent: CustomerChanges | null,
  current: RowVersion,
): Promise<Refusal> {
  const { call, authority, preconditions, target, key } = write;
  const found = diagnose(preconditions, current);
  // With a key a lost answer would have been replayed.
  const isRepeat = found === "stale" && key === null && (await isStored(customers, write, sent, current));
  const diagnosis = isRepeat ? "already-stored" : found;
  return preconditionFailed(trail, call, target.id, { authority, preconditions, diagnosis, current });
}

/**
 * Whether the customer in this version already holds what was sent; false for a caller who may not read it.
 */
async function isStored(
  store: CustomerStore,
  { target, authority }: ConditionalWrite,
  sent: CustomerChanges | null,
  version: RowVersion,
): Promise<boolean> {
  const values = sentValues(sent);
  const { read } = authority.rights;
  if (values.length === 0 || !values.every(([name]) => read.has(name))) return false;
  const names = values.map(([name]) => name);
  const stored = await store.read(target.tenant, target.id, projectionOf(names));
  return stored?.rowVersion === version && values.every(([name, value]) => stored.fields[name] === value);
}

function sentValues(sent: CustomerChanges | null): [FieldName, string][] {
  const values: CustomerFields = sent ?? {};
  return FIELD_NAMES.flatMap((name): [FieldName, string][] => {
    const value = values[name];
    return value === undefined ? [] : [[name, value]];
  });
}
