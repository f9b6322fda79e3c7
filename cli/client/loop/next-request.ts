/** The next write or reading of the conflict loop, where limits of time and number still allow it. */
import type { Customer } from "../customer.ts";
import { parseEntityTag } from "../wire/entity-tag.ts";
import type { ApiRequest } from "../wire/request.ts";
import { isLasting } from "../wire/status.ts";
import { end, giveUp, refusal } from "./loop-end.ts";
import type { Event, State, Step } from "./loop-state.ts";

/**
 * HTML pages in a row without any effect: a proxy is answering in place of the service, and waiting does not
 * help.
 */
const PAGES_MAX = 3;

export function sendNext(state: State, event: Event, current: Customer): Step {
  const tag = parseEntityTag(state.job.ifMatch ?? current.etag);
  if (tag.kind !== "strong") return end(state, { kind: "unusable-tag", tag });
  return send(state, event, tag.tag, state.job.intent.request(current, tag.tag));
}

export function send(state: State, { remainingMs }: Event, tag: string, request: ApiRequest): Step {
  const { job, history, sent } = state;
  if (history.attempts > 0 && remainingMs < state.writeMsMin) return giveUp(state, "time-up");
  if (job.maxAttempts !== undefined && history.attempts >= job.maxAttempts)
    return giveUp(state, "attempts-used");
  const tooEarly = remainingMs > state.writeAtRemainingMs;
  const lasting = sent?.reply?.kind === "complete" && isLasting(sent.reply.status);
  if (sent?.reply !== undefined && (history.pages >= PAGES_MAX || lasting || tooEarly))
    return end(state, refusal(state, sent.reply));
  const limitMs = Math.max(remainingMs - state.lookingMs, remainingMs / 2);
  return [
    { ...state, sent: { tag, request, reply: undefined } },
    { kind: "write", request, limitMs },
  ];
}

/** Looking once more always pays: before a reading, a shorter wait rather than none of it. */
export function wait(state: State, { remainingMs }: Event, ms: number, next: "read" | "write"): Step {
  if (next === "read" && ms === 0) return [state, { kind: "read", persistent: true }];
  const shortened =
    next === "read" ? Math.min(ms, Math.max(remainingMs / 4, remainingMs - state.lookingMs)) : ms;
  return [
    { ...state, next },
    { kind: "wait", ms: shortened },
  ];
}
