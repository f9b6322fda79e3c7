/** Reads, which may be repeated at will: a short trouble on the way is no reason to fail. */
import type { Deadline } from "./deadline.ts";
import { httpDateMs } from "./http-date.ts";
import { failedBy, type Reply, type Transport } from "./reply.ts";
import type { ApiRequest } from "./request.ts";
import { backOffMs, retryAfterMs } from "./retry-timing.ts";
import { meaningOf } from "./status.ts";

/**
 * Readings that broke off or met a failing server: within a few seconds a server that always fails is
 * reported.
 */
const BROKEN_READS_MAX = 7;

/**
 * Sends until there is a usable answer: waits on 429 and 503 as Retry-After says, and repeats what broke
 * off. Returns the last reply when the deadline would pass; where it cut that one off, the one before it,
 * which says more.
 * @param persistent goes on until the deadline whatever comes, where the answer decides what became of a
 * write.
 */
export async function readWithRetry(
  transport: Transport,
  request: ApiRequest,
  deadline: Deadline,
  persistent = false,
): Promise<Reply> {
  let telling: Reply | undefined;
  for (let attempt = 1; ; attempt += 1) {
    // Half of the time that is left: one reply that never comes must not use up all of it.
    const remainingMs = deadline.remainingMs();
    const limitMs = persistent ? Math.min(remainingMs, Math.max(1000, remainingMs / 2)) : remainingMs;
    const reply = await transport.send(request, limitMs, deadline.interrupted);
    const waitMs = waitBeforeRepeating(reply, attempt, persistent);
    if (!failedBy(reply, "timeout")) telling = reply;
    if (waitMs === undefined || waitMs >= deadline.remainingMs()) return telling ?? reply;
    await deadline.wait(waitMs);
  }
}

/** Undefined: this reply is the answer. */
export function waitBeforeRepeating(reply: Reply, attempt: number, persistent: boolean): number | undefined {
  if (reply.kind === "no-complete-reply") {
    const hopeless = reply.cause === "interrupted" || reply.cause === "unreadable" || reply.cause === "tls";
    if (hopeless) return undefined;
    if (persistent) return backOffMs(attempt);
    return reply.cause === "reset" && attempt < BROKEN_READS_MAX ? backOffMs(attempt) : undefined;
  }
  const meaning = meaningOf(reply.status);
  if (meaning.read === "final") return undefined;
  const askedMs = meaning.read === "when-asked" ? serverWaitMs(reply) : undefined;
  // Jitter on top: all who were refused together would come back together.
  if (askedMs !== undefined) return askedMs + backOffMs(attempt);
  // A limit on requests passes by itself, whether the server says when or not.
  return persistent || meaning.kind === "busy" || attempt < BROKEN_READS_MAX ? backOffMs(attempt) : undefined;
}

/** Milliseconds that Retry-After asks for; undefined where nothing does. */
export function serverWaitMs(reply: Reply): number | undefined {
  if (reply.kind !== "complete") return undefined;
  const { fields } = reply;
  return retryAfterMs(fields.get("retry-after"), httpDateMs(fields.get("date")) ?? Date.now());
}
