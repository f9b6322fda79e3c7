/** Creations, which no If-Match protects: sent again only where the earlier one certainly had no effect. */
import { type Customer, memberNamed, plainText, shownCustomer } from "./customer.ts";
import { isReplayed, judgeCreation } from "./loop/verdict.ts";
import type { Ports } from "./read-customer.ts";
import { type Refusal, refusalOf } from "./refusal.ts";
import { serverWaitMs } from "./wire/read-retry.ts";
import { type CompleteReply, failedBy, type Reply, requestIdOf } from "./wire/reply.ts";
import type { CreationRequest } from "./wire/request.ts";
import { backOffMs, NOT_SENT_MAX } from "./wire/retry-timing.ts";
import { isLasting } from "./wire/status.ts";

export type Created = {
  kind: "created";
  /** Where the reply shows it. */
  customer: Customer | undefined;
  /** Of the body, else of Location. */
  id: string | undefined;
  tag: string | undefined;
  /** It was created earlier, under the same idempotency key. */
  replayed: boolean;
  requestId: string | undefined;
};

export type CreationStopped = { kind: "unknown-outcome"; unclear: Reply } | Refusal;

export type Creation = (Created | CreationStopped) & { attempts: number };

/**
 * Sends again what never left, and what was answered with 429. After a lost reply it stops, and after 503,
 * which a gateway also sends when it lost the reply: a deployment that ignores Idempotency-Key would create
 * a second customer. After a sending of unknown outcome, no later refusal says that nothing was created.
 * @param keyHonoured the deployment is known to honour Idempotency-Key, so that any repetition is safe.
 */
export async function createUntilDecided(
  { transport, deadline }: Ports,
  request: CreationRequest,
  keyHonoured = false,
): Promise<Creation> {
  let notSent = 0;
  let unclear: Reply | undefined;
  for (let attempts = 1; ; attempts += 1) {
    const reply = await transport.send(request, deadline.remainingMs(), deadline.interrupted);
    const verdict = judgeCreation(reply, request.members);
    if (verdict === "accepted" && reply.kind === "complete") return { ...created(reply), attempts };
    if (verdict === "not-sent") notSent += 1;
    if (verdict === "may-arrive") unclear = reply;
    const unreached = failedBy(reply, "unreachable");
    const again =
      verdict === "busy" ||
      (verdict === "not-sent" && unreached && notSent < NOT_SENT_MAX) ||
      (verdict === "may-arrive" && keyHonoured && !(reply.kind === "complete" && isLasting(reply.status)));
    const waitMs = (serverWaitMs(reply) ?? 0) + backOffMs(attempts);
    if (again && waitMs < deadline.remainingMs()) await deadline.wait(waitMs);
    else if (unclear !== undefined) return { kind: "unknown-outcome", unclear, attempts };
    else return { ...refusalOf(reply, "writing"), attempts };
  }
}

function created(reply: CompleteReply): Created {
  const tag = reply.fields.get("etag");
  const customer = shownCustomer(reply);
  const shown = customer && memberNamed(customer.value, "id")?.value;
  return {
    kind: "created",
    customer,
    id: plainText(shown ?? "") || idIn(reply.fields.get("location")),
    tag,
    replayed: isReplayed(reply),
    requestId: requestIdOf(reply),
  };
}

/** Where the reply had no body, its Location names the customer; nothing that would have to be decoded. */
function idIn(location: string | undefined): string | undefined {
  const id = location?.split(/[?#]/)[0]?.split("/").pop() ?? "";
  return /^[\w.~-]+$/.test(id) ? id : undefined;
}
