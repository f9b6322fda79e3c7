import type { CustomersApi } from "./customers-api.ts";
import type { Deadline } from "./deadline.ts";
import type { Failure } from "./failure.ts";
import { readWithRetry } from "./read-retry.ts";
import { readFailure } from "./reply-failure.ts";
import { type Customer, parseCustomer } from "./representation.ts";
import { readCustomer } from "./requests.ts";

export type Ports = { api: CustomersApi; deadline: Deadline };

/**
 * One customer as it is now, or why not; one that does not exist is a failure with the exit `not-found`.
 * @param fields undefined: the server's default set. @param persistent see readWithRetry.
 */
export async function readCurrent(
  { api, deadline }: Ports,
  id: string,
  fields: readonly string[] | undefined,
  persistent = false,
): Promise<Customer | Failure> {
  const reply = await readWithRetry(api, readCustomer(id, fields), deadline, persistent);
  const customer =
    reply.kind === "complete" && reply.status === 200
      ? parseCustomer(reply.text, reply.fields.get("etag"))
      : undefined;
  return customer ?? readFailure(reply, { what: `customer ${id}`, url: api.url, fields });
}
