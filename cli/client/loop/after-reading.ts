/** What the conflict loop does about a reading: at first, and to find out what became of a write. */

import type { Customer } from "../customer.ts";
import { backOffMs } from "../wire/retry-timing.ts";
import { conflict, end, giveUp, refusal, written } from "./loop-end.ts";
import { type Event, lastReply, type State, type Step, unlooked } from "./loop-state.ts";
import { sendNext, wait } from "./next-request.ts";
import { mayBeConfirmed } from "./verdict.ts";
import { claims, unmetExpectation } from "./write-job.ts";

export function onRead(state: State, event: Extract<Event, { kind: "read" }>): Step {
  const { reading } = event;
  if (state.base === undefined) {
    if (reading.kind !== "read") return end(state, { ...reading, method: "GET" });
    const { customer, requestId } = reading;
    return decide({ ...state, base: customer, current: customer, requestId }, event, customer, customer);
  }
  const unmoved = reading.kind === "read" && reading.customer.etag === state.sent?.tag;
  const { doubts, settled } = state.history;
  const next = unmoved
    ? { ...state, history: { ...state.history, doubts: 0, settled: settled + doubts } }
    : unlooked(state);
  if (reading.kind !== "read" && reading.kind !== "not-found") {
    if (next.history.unknowns > 0 || reading.kind === "interrupted")
      return end(next, { ...reading, method: "GET" });
    // After a 412 nothing of ours was applied; a conflict that can't be looked at is still a conflict.
    return giveUp(next, "unreadable", reading);
  }
  const current = reading.kind === "read" ? reading.customer : "gone";
  // Not what the reply shows: it said too little to be believed, or showed another text than was sent.
  if (isConfirmed(state, state.base, current))
    return end(next, written(state, current === "gone" ? undefined : current));
  const requestId = (reading.kind === "read" ? reading.requestId : undefined) ?? state.requestId;
  return decide({ ...next, current, requestId }, event, state.base, current);
}

/** What to do about the state that was read last. */
function decide(state: State, event: Event, base: Customer, current: Customer | "gone"): Step {
  const { job, history, sent } = state;
  const { intent, onConflict, expect, ifMatch: pin } = job;
  const asWanted = intent.isAsWanted(base, current);
  if (current === "gone") {
    const done = history.attempts > 0 && !claims(job) && asWanted;
    return end(state, done ? { kind: "as-wanted", customer: undefined } : { kind: "deleted" });
  }
  const unmet = unmetExpectation(expect, current);
  if (unmet !== undefined) {
    return end(state, {
      kind: "expectation",
      ...unmet,
      asWanted,
      atFirst: history.attempts === 0,
      current,
    });
  }
  if (history.attempts === 0) {
    const pinnedElsewhere = pin !== undefined && pin !== current.etag;
    if (intent.isUnchanged(current) && !pinnedElsewhere)
      return end(state, { kind: "unchanged", customer: current });
    // A body that was completed from another version than the pinned one would carry that version's values.
    if (pinnedElsewhere && !intent.selfContained) return end(state, conflict(state, "pinned", []));
    return sendNext(state, event, current);
  }
  const reply = lastReply(state);
  if (reply !== undefined && history.last === "gone" && (pin !== undefined || !asWanted))
    return end(state, { ...refusal(state, reply), kind: "write-not-found", reply });
  const unmoved = current.etag === sent?.tag;
  const unclear = history.last === "may-arrive" || history.last === "reading-settles";
  if (unmoved && reply?.status === 202) return lookAgain(state, event);
  if (pin !== undefined)
    return unmoved && history.last === "reading-settles"
      ? sendNext(state, event, current)
      : end(state, undefined);
  // Every accepted write makes a new tag (specification 2.4): under the old one, the lost write is not
  // there.
  if (asWanted && !(unmoved && unclear)) return end(state, { kind: "as-wanted", customer: current });
  if (unmoved)
    return history.last === "stale" && onConflict === "fail"
      ? end(state, conflict(state, "changed", []))
      : sendNext(state, event, current);
  // Its reply named this version: sent again, the write would make the same of it.
  if (unclear && current.etag !== undefined && current.etag === reply?.fields.get("etag"))
    return end(unlooked(state), undefined);
  const fields = intent.conflicts(base, current);
  const stops = onConflict === "fail" || (onConflict === "merge" && fields.length > 0);
  return stops ? end(state, conflict(state, "changed", fields)) : sendNext(state, event, current);
}

/** The server has taken the write, and not applied it yet: sent again, it could be applied twice. */
function lookAgain(state: State, event: Event): Step {
  if (event.remainingMs < state.writeMsMin) return end(state, undefined);
  const looks = state.looks + 1;
  return wait({ ...state, looks }, event, backOffMs(looks, event.chance), "read");
}

/** The reply was a success, and the reading shows what it said: the version that it named, or no customer. */
function isConfirmed(state: State, base: Customer, shown: Customer | "gone"): boolean {
  const { job, sent } = state;
  const reply = lastReply(state);
  if (reply === undefined || !mayBeConfirmed(reply, job.id)) return false;
  if (shown === "gone") return job.intent.isAsWanted(base, "gone");
  if (shown.etag === undefined || shown.etag === sent?.tag || job.intent.contradicts(shown)) return false;
  return shown.etag === reply.fields.get("etag");
}
