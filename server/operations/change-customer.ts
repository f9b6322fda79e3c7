import { type CustomerChanges, PATCH_BODY, REPLACEMENT_BODY } from "../domain/customer/customer.ts";
import { flatMap, type MemberFault, ok, type Result } from "../domain/problem.ts";
import type { Call } from "./call.ts";
import { JSON_TYPES } from "./checks.ts";
import {
  checkWrite,
  idempotencyKeyOf,
  refuseBody,
  resultOf,
  type WriteStores,
  type Written,
} from "./conditional-write.ts";
import { BodySchema } from "./request/body-schema.ts";

/** PATCH is a JSON Merge Patch (RFC 7396). */
export const PATCH_TYPES = ["application/merge-patch+json", "application/json"] as const;

const BODIES = {
  PUT: { types: JSON_TYPES, schema: new BodySchema(REPLACEMENT_BODY) },
  PATCH: { types: PATCH_TYPES, schema: new BodySchema(PATCH_BODY) },
} as const;

export function replace(stores: WriteStores, call: Call, id: string): Promise<Result<Written>> {
  return change("PUT", stores, call, id);
}

export function patch(stores: WriteStores, call: Call, id: string): Promise<Result<Written>> {
  return change("PATCH", stores, call, id);
}

async function change(
  method: keyof typeof BODIES,
  stores: WriteStores,
  call: Call,
  id: string,
): Promise<Result<Written>> {
  const early = checkWrite(call, call.authority, method, id);
  if (!early.ok) return early;
  const json = await call.readJson(BODIES[method].types);
  const body = flatMap(json, (value) => readChanges(method, value, early.value.target.id));
  const authority = await call.lookAgain();
  if (!authority.ok) return authority;
  const write = checkWrite(call, authority.value, method, id);
  if (!write.ok) return write;
  if (!body.ok) return refuseBody(stores, write.value, body);
  const { target, projection, origin } = write.value;
  const key = idempotencyKeyOf(write.value, body.value);
  const outcome = await stores.customers.update(target, body.value, projection, key, origin);
  return resultOf(stores, write.value, body.value, outcome);
}

/** `id` in a body is tolerated when it is the path's: what was read can be sent back as it is. */
function readChanges(method: keyof typeof BODIES, json: unknown, storedId: string): Result<CustomerChanges> {
  const body: Result<CustomerChanges & { id?: string }> = BODIES[method].schema.read(
    json,
    faultsOfId(json, storedId),
  );
  return flatMap(body, ({ id, ...changes }) => ok(changes));
}

function faultsOfId(json: unknown, storedId: string): MemberFault[] {
  const id = typeof json === "object" && json !== null && "id" in json ? json.id : undefined;
  if (typeof id !== "string" || id.toLowerCase() === storedId) return [];
  return [{ pointer: "/id", detail: "is not the id in the path; an id cannot be changed" }];
}
