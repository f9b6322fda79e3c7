import type { WriteOrigin } from "../../../domain/audit/audit-entry.ts";
import { drawSalt } from "../../../domain/audit/kept-values.ts";
import type { CustomerChanges, CustomerFields, NewCustomer } from "../../../domain/customer/customer.ts";
import { drawCustomerId } from "../../../domain/customer/customer-id.ts";
import { foldEmail } from "../../../domain/customer/email.ts";
import { drawRowVersion, type RowVersion } from "../../../domain/entity-tag.ts";
import { pick } from "../../../domain/pick.ts";
import type { Projection } from "../../../domain/projection.ts";
import { IDEMPOTENCY_KEY_MS, type IdempotencyKey, type WriteTarget } from "../../customers/customer-store.ts";
import type { Param } from "../connection/lane.ts";
import { arrayLiteral, columnsOf } from "../rows/array-literal.ts";
import { createText, readText, removeText, updateText } from "../rows/customer-sql.ts";
import type { QueuedWrite, WriteKind } from "./queued-write.ts";

/** PUT and PATCH. */
export function updateOf(
  target: WriteTarget,
  { name, email, status }: CustomerChanges,
  projection: Projection,
  key: IdempotencyKey | null,
  origin: WriteOrigin,
): QueuedWrite {
  const next = drawRowVersion();
  const folded = email === undefined ? null : foldEmail(email);
  const values = [name ?? null, email ?? null, folded, status ?? null, next];
  return {
    ...conditional(target, key),
    kind: updateKind(projection, key !== null, origin.keepsValues),
    values: [
      ...targetValues(target),
      ...values,
      ...originValues(origin),
      ...saltOf(origin),
      ...keyValues(key),
    ],
    next,
    rereadText: readText(projection),
    outcomeOf: (row) => ({
      kind: "applied",
      rowVersion: row["row_version"] as RowVersion,
      fields: pick(row as CustomerFields, projection),
      isReplayed: false,
    }),
  };
}

/** DELETE. */
export function removeOf(target: WriteTarget, key: IdempotencyKey | null, origin: WriteOrigin): QueuedWrite {
  return {
    ...conditional(target, key),
    kind: removeKind(key !== null),
    values: [...targetValues(target), ...originValues(origin), ...keyValues(key)],
    next: null,
    rereadText: null,
    outcomeOf: () => ({ kind: "removed", isReplayed: false }),
  };
}

/** POST. */
export function createOf(
  tenant: string,
  { name, email, status }: NewCustomer,
  nowMs: number,
  key: IdempotencyKey | null,
  origin: WriteOrigin,
): QueuedWrite {
  const next = drawRowVersion();
  const values = [tenant, name, email, foldEmail(email), status, next, String(nowMs)];
  return {
    kind: createKind(key !== null, origin.keepsValues),
    target: null,
    lockKey: tenant,
    values: [...values, ...originValues(origin), ...saltOf(origin), ...keyValues(key)],
    next,
    key,
    isRepeatable: key !== null,
    rereadText: null,
    outcomeOf: (row) => ({ kind: "created", id: row["id"] as string, rowVersion: next, isReplayed: false }),
  };
}

function conditional(target: WriteTarget, key: IdempotencyKey | null) {
  const isRepeatable = key !== null || typeof target.expected === "string";
  return { target, key, isRepeatable, lockKey: `${target.tenant}\0${target.id}` };
}

function targetValues({ tenant, id, expected }: WriteTarget): Param[] {
  if (typeof expected === "string") return [tenant, id, expected, null];
  const { anyExcept } = expected;
  return [tenant, id, null, anyExcept.length === 0 ? null : anyExcept.join(",")];
}

function originValues({ client, tokenPrefix, requestId, operation, isWithoutIfMatch }: WriteOrigin): Param[] {
  return [client, tokenPrefix, requestId, operation, isWithoutIfMatch ? "1" : "0"];
}

function saltOf({ keepsValues }: WriteOrigin): Param[] {
  return keepsValues ? [drawSalt()] : [];
}

function keyValues(key: IdempotencyKey | null): Param[] {
  if (key === null) return [];
  return [key.tokenId, key.key, key.digest, String(key.nowMs + IDEMPOTENCY_KEY_MS)];
}

const params = (writes: readonly QueuedWrite[]): Param[] => columnsOf(writes.map(({ values }) => values));

/** One for each operation, projection, whether there is a key, and whether values are kept: 70 at most. */
const kinds = new Map<string, WriteKind>();

function updateKind(projection: Projection, isKeyed: boolean, keepsValues: boolean): WriteKind {
  return kinds.getOrInsertComputed(`update ${projection.fields.join()} ${isKeyed} ${keepsValues}`, () => ({
    batchText: updateText(projection, { isSkipping: true, isKeyed, keepsValues }),
    aloneText: updateText(projection, { isSkipping: false, isKeyed, keepsValues }),
    params,
  }));
}

function removeKind(isKeyed: boolean): WriteKind {
  return kinds.getOrInsertComputed(`remove ${isKeyed}`, () => ({
    batchText: removeText({ isSkipping: true, isKeyed }),
    aloneText: removeText({ isSkipping: false, isKeyed }),
    params,
  }));
}

function createKind(isKeyed: boolean, keepsValues: boolean): WriteKind {
  return kinds.getOrInsertComputed(`create ${isKeyed} ${keepsValues}`, () => {
    const text = createText({ isKeyed, keepsValues });
    return { batchText: text, aloneText: text, params: creationParams };
  });
}

/**
 * Draws the ids of a batch, anew for each try: those of a
 * tenant ascend, and how far each is from its newest one.
 */
function creationParams(writes: readonly QueuedWrite[]): Param[] {
  const tenants = new Map<string, { first: string; last: string; steps: number }>();
  const drawn = writes.map(({ values }) => {
    const [tenant, nowMs] = [values[0] ?? "", Number(values[6])];
    const before = tenants.get(tenant);
    const id = drawCustomerId(nowMs, before?.last ?? null);
    const steps = (before?.steps ?? 0) + randomStep();
    tenants.set(tenant, { first: before?.first ?? id, last: id, steps });
    return { id, steps };
  });
  const rows = writes.map(({ values }, index) => {
    const [tenant = "", ...rest] = values;
    const { id, steps } = drawn[index] ?? { id: "", steps: 0 };
    return [tenant, tenants.get(tenant ?? "")?.first ?? "", id, String(steps), ...rest];
  });
  const heads = [...tenants];
  return [
    arrayLiteral(heads.map(([tenant]) => tenant)),
    arrayLiteral(heads.map(([, { first }]) => first)),
    arrayLiteral(heads.map(([, { last }]) => last)),
    arrayLiteral(heads.map(([, { steps }]) => String(steps))),
    ...columnsOf(rows),
  ];
}

/** 1 to 2^32: ids that follow each other must not be guessed from one another. */
function randomStep(): number {
  const [step = 0] = crypto.getRandomValues(new Uint32Array(1));
  return step + 1;
}
