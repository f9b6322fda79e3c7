import { REPLACEMENT_BODY } from "../domain/customer.ts";
import { flatMap, type Result } from "../domain/problem.ts";
import { BodySchema } from "./body-schema.ts";
import type { Call } from "./call.ts";
import { JSON_TYPES } from "./checks.ts";
import {
  checkWrite,
  idempotencyKeyOf,
  readChanges,
  refuseBody,
  resultOf,
  type WriteStores,
  type Written,
} from "./conditional-write.ts";

const replacementBody = new BodySchema(REPLACEMENT_BODY);

/** PUT. */
export async function replace(stores: WriteStores, call: Call, id: string): Promise<Result<Written>> {
  const early = checkWrite(call, call.authority, "PUT", id);
  if (!early.ok) return early;
  const body = flatMap(await call.readJson(JSON_TYPES), (json) =>
    readChanges(replacementBody, json, early.value.target.id),
  );
  const authority = await call.lookAgain();
  if (!authority.ok) return authority;
  const write = checkWrite(call, authority.value, "PUT", id);
  if (!write.ok) return write;
  if (!body.ok) return refuseBody(stores, write.value, body);
  const { target, projection, origin } = write.value;
  const key = idempotencyKeyOf(write.value, body.value);
  const outcome = await stores.customers.update(target, body.value, projection, key, origin);
  return resultOf(stores, write.value, body.value, outcome);
}
