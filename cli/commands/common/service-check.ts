/** Whether a customer service answers, and takes the credentials: the one answer of login, whoami and doctor. */
import { type Ports, readCurrent } from "../../client/read-customer.ts";
import { type Failure, failure } from "../../outcome/failure.ts";
import { notAService, readFailure, readReason } from "../../outcome/reply-failure.ts";

/** No service assigns it: a reading of it shows whether the credentials are known, and shows nobody's data. */
const NO_CUSTOMER = "00000000-0000-0000-0000-000000000000";

/** Replies that say what they are about; any other shows that this is no customer service. */
const CLEAR: readonly string[] = [
  ...["unreachable", "interrupted", "unauthenticated", "forbidden", "redirected", "proxy-credentials"],
  ...["busy", "unavailable", "server-error"],
];

/** Undefined: a customer service answered, and did not refuse the credentials. */
export async function refusedByService(ports: Ports): Promise<Failure | undefined> {
  const { url } = ports.transport;
  const reading = await readCurrent(ports, NO_CUSTOMER);
  if (reading.kind === "not-found") return undefined;
  const subject = { what: "the test customer", url };
  if (CLEAR.includes(reading.kind) && reading.kind !== "read") return readFailure(reading, subject);
  const why = reading.kind === "read" ? "it shows the test customer" : readReason(reading, subject).why;
  return failure("failure", `${url} does not answer as a customer service: ${why}`, notAService(url));
}
