/** Creations, which no If-Match protects: sent again only where the earlier one certainly had no effect. */

import type { Ports } from "./read-customer.ts";
import { serverWaitMs } from "./read-retry.ts";
import type { Reply } from "./reply.ts";
import type { ApiRequest } from "./request.ts";
import { backOffMs } from "./retry-timing.ts";
import { saysWhen } from "./verdict.ts";

/** Sendings in a row that found no connection. */
const NOT_SENT_MAX = 3;

/**
 * Waits on 429, and on 503 as Retry-After says, and sends again what never left. After a lost reply it stops, and
 * after a 503 that says nothing, which a gateway sends when it lost the reply: a deployment that ignores Idempotency-Key would create a second customer, so that is the operator's decision.
 */
export async function sendCreation(
  { api, deadline }: Ports,
  request: ApiRequest,
): Promise<{ reply: Reply; attempts: number }> {
  let notSent = 0;
  for (let attempts = 1; ; attempts += 1) {
    const reply = await api.send(request, deadline);
    let waitMs: number | undefined;
    if (reply.kind === "no-complete-reply") {
      notSent += 1;
      if (!reply.sent && reply.cause === "unreachable" && notSent < NOT_SENT_MAX) waitMs = backOffMs(notSent);
    } else if (reply.status === 429 || (reply.status === 503 && saysWhen(reply))) {
      waitMs = (serverWaitMs(reply.fields) ?? 0) + backOffMs(attempts);
    }
    if (waitMs === undefined || waitMs >= deadline.remainingMs()) return { reply, attempts };
    await deadline.wait(waitMs);
  }
}
