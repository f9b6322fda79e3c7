/**
 * The conflict loop as one state machine: from a state and what happened to the next state and what to do.
 * It reads, writes with the tag just read, and reads again until the outcome is known. Pure: loop.ts acts.
 */

import { NO_CHANGES } from "../named-changes.ts";
import type { Reading } from "../read-customer.ts";
import { noReply } from "../wire/reply.ts";
import { onRead } from "./after-reading.ts";
import { onReplied } from "./after-reply.ts";
import { end, refusal } from "./loop-end.ts";
import { type Event, NO_HISTORY, type State, type Step, unlooked } from "./loop-state.ts";
import { send } from "./next-request.ts";
import type { WriteJob } from "./write-job.ts";

/** The last fifth of the time is kept for looking, but no more than this. */
const LOOKING_MS_MAX = 5000;

/**
 * A write that starts in the last moments would end in an unknown outcome, for want of time to hear of it.
 */
const WRITE_MS_MIN = 2000;

/** @param remainingMs the time of the whole run. */
export function begin(job: WriteJob, remainingMs: number): Step {
  const state: State = {
    job,
    lookingMs: Math.min(LOOKING_MS_MAX, remainingMs / 5),
    writeMsMin: Math.min(WRITE_MS_MIN, remainingMs / 4),
    history: NO_HISTORY,
    base: undefined,
    current: undefined,
    sent: undefined,
    unclear: undefined,
    looks: 0,
    next: "read",
    writeAtRemainingMs: Number.POSITIVE_INFINITY,
    requestId: undefined,
    changes: NO_CHANGES,
  };
  if (job.base === undefined) return [state, { kind: "read", persistent: false }];
  const reading: Reading = { kind: "read", customer: job.base, requestId: undefined };
  return step(state, { kind: "read", reading, remainingMs, chance: 0 });
}

export function step(state: State, event: Event): Step {
  switch (event.kind) {
    case "read":
      return onRead(state, event);
    case "replied":
      return onReplied(state, event);
    case "timeUp":
      return state.next === "read" || state.sent === undefined
        ? [state, { kind: "read", persistent: true }]
        : send(state, event, state.sent.tag, state.sent.request);
    case "interrupted":
      return end(unlooked(state), refusal(state, noReply("interrupted", false)));
  }
}
