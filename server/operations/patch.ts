import { PATCH_BODY } from "../domain/customer.ts";
import { flatMap, type Result } from "../domain/problem.ts";
import { BodySchema } from "./body-schema.ts";
import type { Call } from "./call.ts";
import {
  checkWrite,
  idempotencyKeyOf,
  readChanges,
  refuseBody,
  resultOf,
  type WriteStores,
  type Written,
} from "./conditional-write.ts";

export const PATCH_TYPES = ["application/merge-patch+json", "application/json"] as const;

const patchBody = new BodySchema(PATCH_BODY);

/** PATCH: a JSON Merge Patch (RFC 7396). */
export async function patch(stores: WriteStores, call: Call, id: string): Promise<Result<Written>> {
  const early = checkWrite(call, call.authority, "PATCH", id);
  if (!early.ok) return early;
  const body = flatMap(await call.readJson(PATCH_TYPES), (json) =>
    readChanges(patchBody, json, early.value.target.id),
  );
  const authority = await call.lookAgain();
  if (!authority.ok) return authority;
  const write = checkWrite(call, authority.value, "PATCH", id);
  if (!write.ok) return write;
  if (!body.ok) return refuseBody(stores, write.value, body);
  const { target, projection, origin } = write.value;
  const key = idempotencyKeyOf(write.value, body.value);
  const outcome = await stores.customers.update(target, body.value, projection, key, origin);
  return resultOf(stores, write.value, body.value, outcome);
}
