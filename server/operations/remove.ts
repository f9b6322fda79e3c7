import type { Result } from "../domain/problem.ts";
import type { Call } from "./call.ts";
import {
  checkWrite,
  idempotencyKeyOf,
  refuseBody,
  resultOf,
  type WriteStores,
  type Written,
} from "./conditional-write.ts";

/** DELETE. A body is not read, so the authority of the headers decides. */
export async function remove(stores: WriteStores, call: Call, id: string): Promise<Result<Written>> {
  const write = checkWrite(call, call.authority, "DELETE", id);
  if (!write.ok) return write;
  const body = call.checkUnreadBody();
  if (!body.ok) return refuseBody(stores, write.value, body);
  const { target, origin } = write.value;
  const outcome = await stores.customers.remove(target, idempotencyKeyOf(write.value, null), origin);
  return resultOf(stores, write.value, null, outcome);
}
