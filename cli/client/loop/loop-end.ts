/** The ends of the conflict loop. */

import type { Customer } from "../customer.ts";
import { type ReadRefusal, type Refusal, refusalOf } from "../refusal.ts";
import type { Reply } from "../wire/reply.ts";
import type { FieldConflict } from "./field-conflicts.ts";
import { lastReply, type State, type Step } from "./loop-state.ts";
import { claims } from "./write-job.ts";
import { type Conflict, type Ended, isDone, type WriteOutcome } from "./write-outcome.ts";

/**
 * After a write of unknown outcome nothing may say that nothing was written: the ending becomes the
 * obstacle.
 */
export function end(state: State, ended: Ended | undefined): Step {
  const { history, base, job, unclear, requestId, changes } = state;
  const done = ended !== undefined && isDone(ended);
  const open = ended === undefined || (history.unknowns > 0 && !done);
  const obstacle = ended === undefined || done || ended.kind === "unknown-outcome" ? undefined : ended;
  const known: Ended = open ? { kind: "unknown-outcome", unclear, obstacle, claims: claims(job) } : ended;
  const outcome: WriteOutcome = {
    ...known,
    attempts: history.attempts,
    conflicts: history.conflicts,
    unknowns: history.unknowns,
    before: base?.etag,
    after: tagAfter(state, known),
    requestId,
    ...changes,
  };
  return [state, { kind: "end", outcome }];
}

/** `state.current` is what was read before the write. @param customer as the write made it, where that is known. */
export function written(state: State, customer: Customer | undefined): Ended {
  const { sent, current } = state;
  return {
    kind: "written",
    customer,
    replacedTag: sent?.tag ?? "",
    replaced: current !== "gone" && current?.etag === sent?.tag ? current : undefined,
    overwritten: conflictsNow(state),
  };
}

/** No time or no attempts left: what the last write came to decides. */
export function giveUp(state: State, why: Conflict["why"], unreadable?: ReadRefusal): Step {
  const { history, sent } = state;
  if (history.unknowns > 0) return end(state, undefined);
  if (history.last !== "stale" && sent?.reply !== undefined) return end(state, refusal(state, sent.reply));
  return end(state, { ...conflict(state, why, conflictsNow(state)), unreadable });
}

export function conflict(state: State, why: Conflict["why"], fields: readonly FieldConflict[]): Conflict {
  const { base, current, sent, job } = state;
  if (base === undefined) throw new Error("nothing was read");
  const theirs = current === undefined || current === "gone" ? base : current;
  const reply = why === "pinned" ? lastReply(state) : undefined;
  const currentTag = reply === undefined ? theirs.etag : reply.fields.get("etag");
  return {
    kind: "conflict",
    why,
    fields,
    base,
    theirs,
    currentTag,
    sentTag: sent?.tag ?? job.ifMatch,
    reply,
    unreadable: undefined,
  };
}

/** What someone else changed that this write goes over. */
function conflictsNow({ base, current, job }: State): readonly FieldConflict[] {
  return base === undefined || current === undefined || current === "gone"
    ? []
    : job.intent.conflicts(base, current);
}

export function refusal({ sent }: State, reply: Reply): Refusal & { method: string } {
  return { ...refusalOf(reply, "writing"), method: sent?.request.method ?? "PUT" };
}

/** A deletion leaves none behind, whatever its reply carries. */
function tagAfter(state: State, ended: Ended): string | undefined {
  if (ended.kind !== "written") return isDone(ended) ? ended.customer?.etag : undefined;
  return state.sent?.request.method === "DELETE" ? undefined : lastReply(state)?.fields.get("etag");
}
