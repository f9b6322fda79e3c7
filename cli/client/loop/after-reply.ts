/** What the conflict loop does about the reply to a write, or about the lack of one. */
import { shownCustomer } from "../customer.ts";
import { withChangesOf } from "../named-changes.ts";
import { serverWaitMs } from "../wire/read-retry.ts";
import { failedBy, requestIdOf } from "../wire/reply.ts";
import { asPlainJson } from "../wire/request.ts";
import { backOffMs, NOT_SENT_MAX } from "../wire/retry-timing.ts";
import { isSuccess } from "../wire/status.ts";
import { conflict, end, giveUp, refusal, written } from "./loop-end.ts";
import { type Event, recorded, type State, type Step } from "./loop-state.ts";
import { send, wait } from "./next-request.ts";
import { judgeWrite } from "./verdict.ts";

/**
 * Contradictions in a row: no other writer explains one, and waiting does not stop a proxy from changing
 * tags.
 */
const CONTRADICTIONS_MAX = 3;

export function onReplied(state: State, event: Extract<Event, { kind: "replied" }>): Step {
  const { reply, tookMs, remainingMs, chance } = event;
  const { job, sent } = state;
  if (sent === undefined) throw new Error("nothing was sent");
  const complete = reply.kind === "complete" ? reply : undefined;
  // Also where a proxy has made it weak.
  const contradicts = complete?.fields.get("etag")?.endsWith(sent.tag) === true;
  let verdict = judgeWrite(reply, job.intent.confirms);
  // An accepted write has a new tag (specification 2.4): what comes under the old one is a copy of the old.
  if (verdict === "accepted" && contradicts) verdict = "reading-settles";
  const history = recorded(state.history, verdict, {
    contradicts,
    ofSuccess: complete !== undefined && isSuccess(complete.status),
  });
  const askedMs = serverWaitMs(reply) ?? 0;
  const unclear = verdict === "may-arrive" || verdict === "reading-settles";
  const next: State = {
    ...state,
    history,
    sent: { ...sent, reply },
    unclear: unclear ? reply : state.unclear,
    requestId: requestIdOf(reply) ?? state.requestId,
    changes: verdict === "stale" ? withChangesOf(reply, state.changes, job.requestId) : state.changes,
    writeMsMin: Math.max(state.writeMsMin, complete === undefined ? tookMs : 4 * tookMs),
    writeAtRemainingMs: askedMs > 0 ? remainingMs - askedMs : Number.POSITIVE_INFINITY,
  };
  if (failedBy(reply, "interrupted")) return end(next, refusal(next, reply));
  const retyped = complete?.status === 415 ? asPlainJson(sent.request) : undefined;
  if (retyped !== undefined) return send(next, event, sent.tag, retyped);
  switch (verdict) {
    case "accepted":
      return end(next, written(next, complete && shownCustomer(complete)));
    case "stale":
      if (job.ifMatch !== undefined) return end(next, conflict(next, "pinned", []));
      if (history.contradictions >= CONTRADICTIONS_MAX) return giveUp(next, "contradicted");
      return wait(next, event, backOffMs(history.conflicts, chance), "read");
    case "may-arrive":
      return wait(next, event, history.unknowns === 1 ? 0 : backOffMs(history.unknowns, chance), "read");
    case "reading-settles": {
      const waitMs = askedMs + backOffMs(history.attempts, chance);
      // A wait beyond the deadline is not begun; the reading then shows whether anything was written.
      return wait(next, event, waitMs < remainingMs - state.lookingMs ? waitMs : 0, "read");
    }
    case "gone":
      return wait(next, event, 0, "read");
    case "busy": {
      const waitMs = askedMs + backOffMs(history.attempts, chance);
      return waitMs < remainingMs ? wait(next, event, waitMs, "write") : end(next, refusal(next, reply));
    }
    case "not-sent": {
      const waitMs = backOffMs(history.notSent, chance);
      const again = history.notSent < NOT_SENT_MAX && waitMs < remainingMs;
      return again ? wait(next, event, waitMs, "write") : end(next, refusal(next, reply));
    }
    case "refused":
      return end(next, refusal(next, reply));
  }
}
