import { parseCustomer } from "../client/customer.ts";
import type { Ports } from "../client/read-customer.ts";
import { refusalOf } from "../client/refusal.ts";
import { readWithRetry } from "../client/wire/read-retry.ts";
import { readCustomer } from "../client/wire/request.ts";
import { type Failure, failure } from "../outcome/failure.ts";
import { readFailure } from "../outcome/reply-failure.ts";

/** No service assigns it: a reading of it shows whether the credentials are known, and shows nobody's data. */
const NO_CUSTOMER = "00000000-0000-0000-0000-000000000000";

/** Undefined: a customer service answered, and did not refuse the credentials. */
export async function checkCredentials(
  { transport, deadline }: Ports,
  url: string,
): Promise<Failure | undefined> {
  const reply = await readWithRetry(transport, readCustomer(NO_CUSTOMER, undefined), deadline);
  if (reply.kind !== "complete")
    return readFailure(refusalOf(reply, "reading"), { what: "the test customer", url });
  if (/\bhtml\b/i.test(reply.fields.get("content-type") ?? "")) {
    return failure(
      "failure",
      `${url} answers with a web page (${reply.status}), not as a customer service`,
      "Check the URL: it is the base URL of the service. A proxy or a login page on the way answers like this too.",
    );
  }
  const answered =
    reply.status === 404 || (reply.status === 200 && parseCustomer(reply.text, undefined) !== undefined);
  return answered ? undefined : readFailure(refusalOf(reply, "reading"), { what: "the test customer", url });
}
