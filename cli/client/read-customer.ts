import { type Failure, failure } from "../outcome/failure.ts";
import { readFailure } from "../outcome/reply-failure.ts";
import { type Customer, memberNamed, parseCustomer, plainText } from "./customer.ts";
import type { Deadline } from "./deadline.ts";
import { readWithRetry } from "./read-retry.ts";
import type { CustomersApi } from "./reply.ts";
import { readCustomer } from "./request.ts";

export type Ports = { api: CustomersApi; deadline: Deadline };

/**
 * One customer as it is now, or why not; one that does not exist is a failure with the exit `not-found`, another
 * customer in its place is refused: its values would be written over those of the one that was meant.
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
  if (customer !== undefined) return mistaken(customer, id) ?? customer;
  return readFailure(reply, { what: `customer ${id}`, url: api.url, fields });
}

/**
 * Ids are GUIDs (specification 2.1), compared without regard to case, dashes and braces. An id of another form, in the
 * request or the reply, is a name of the deployment's own making, from which nothing follows.
 */
function mistaken({ value }: Customer, id: string): Failure | undefined {
  const shown = plainText(memberNamed(value, "id")?.value ?? "");
  const [asked, answered] = [guidIn(id), guidIn(shown)];
  if (asked === undefined || answered === undefined || asked === answered) return undefined;
  return failure(
    "failure",
    `customer ${id} could not be read: the server answered with customer ${shown}`,
    "A cache or a proxy on the way mixes up replies: customers doctor ID looks for one.",
  );
}

function guidIn(text: string): string | undefined {
  const bare = text.toLowerCase().replaceAll(/[-{}]/g, "");
  return /^[0-9a-f]{32}$/.test(bare) ? bare : undefined;
}
