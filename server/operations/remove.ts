import type { Result } from "../domain/problem.ts";
import type { Call } from "./call.ts";
import {
  type ConditionalWrite,
  checkWrite,
  idempotencyKeyOf,
  refuseBody,
  resultOf,
  type WriteStores,
  type Written,
} from "./conditional-write.ts";

/**
 * DELETE. A body means nothing (RFC 9110, section 9.3.5), but is read to its end: a request that never becomes
 * whole changes nothing. Without one there is nothing to wait for, and the authority of the headers decides.
 */
export async function remove(stores: WriteStores, call: Call, id: string): Promise<Result<Written>> {
  const early = checkWrite(call, call.authority, "DELETE", id);
  if (!early.ok) return early;
  const reading = call.discardBody();
  if (!(reading instanceof Promise)) return apply(stores, early.value, reading);
  const body = await reading;
  const authority = await call.lookAgain();
  if (!authority.ok) return authority;
  const write = checkWrite(call, authority.value, "DELETE", id);
  return write.ok ? apply(stores, write.value, body) : write;
}

async function apply(
  stores: WriteStores,
  write: ConditionalWrite,
  body: Result<null>,
): Promise<Result<Written>> {
  if (!body.ok) return refuseBody(stores, write, body);
  const { target, origin } = write;
  const outcome = await stores.customers.remove(target, idempotencyKeyOf(write, null), origin);
  return resultOf(stores, write, null, outcome);
}
