/** Whether a customer service answers, and takes the credentials: the one answer of login, whoami and doctor. */
import type { Ports } from "../../client/read-customer.ts";
import { refusalOf } from "../../client/refusal.ts";
import { readWithRetry } from "../../client/wire/read-retry.ts";
import { readCustomer } from "../../client/wire/request.ts";
import type { RefusalKind } from "../../client/wire/status.ts";
import { type Failure, failure } from "../../outcome/failure.ts";
import { isPage, notAService, PAGE, readFailure } from "../../outcome/reply-failure.ts";

/** No service assigns it: a reading of it shows whether the credentials are known, and shows nobody's data. */
const NO_CUSTOMER = "00000000-0000-0000-0000-000000000000";

/**
 * What every customer service says: no such customer; and that there is no such field, before it looks at any
 * data (specification 4.1, rule 5). Whatever else answers with 404 says so both times.
 */
const PROBES: readonly { fields?: readonly string[]; expected: RefusalKind; what: string }[] = [
  { expected: "not-found", what: "a customer that does not exist" },
  { fields: ["no-such-field"], expected: "invalid", what: "a field that does not exist" },
];

/** Replies that say what they are about; any other shows that this is no customer service. */
const CLEAR: readonly string[] = [
  ...["unreachable", "interrupted", "unauthenticated", "forbidden", "redirected", "proxy-credentials"],
  ...["busy", "unavailable", "server-error"],
];

/** Undefined: a customer service answered, and did not refuse the credentials. */
export async function refusedByService({ transport, deadline }: Ports): Promise<Failure | undefined> {
  const { url } = transport;
  for (const { fields, expected, what } of PROBES) {
    const reply = await readWithRetry(transport, readCustomer(NO_CUSTOMER, fields), deadline);
    const refusal = refusalOf(reply, "reading");
    if (refusal.kind === expected) continue;
    if (reply.kind !== "complete" || CLEAR.includes(refusal.kind))
      return readFailure(refusal, { what: "the test customer", url });
    const answer = isPage(reply) ? `${PAGE} (${reply.status})` : `${reply.status} to a reading of ${what}`;
    return failure("failure", `${url} does not answer as a customer service: ${answer}`, notAService(url));
  }
  return undefined;
}
