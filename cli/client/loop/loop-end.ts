/** The ends of the conflict loop. */

import { type ReadRefusal, type Refusal, refusalOf } from "../refusal.ts";
import type { Reply } from "../wire/reply.ts";
import type { FieldConflict } from "./field-conflicts.ts";
import type { State, Step } from "./loop-state.ts";
import { claims } from "./write-job.ts";
import type { Conflict, Ended, WriteOutcome } from "./write-outcome.ts";

/**
 * After a write of unknown outcome nothing may say that nothing was written: the ending becomes the
 * obstacle.
 */
export function end(state: State, ended: Ended | undefined): Step {
  const { history, base, job, unclear, requestId } = state;
  const done = ended?.kind === "written" || ended?.kind === "unchanged" || ended?.kind === "as-wanted";
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
  };
  return [state, { kind: "end", outcome }];
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
  const reply = why === "pinned" && sent?.reply?.kind === "complete" ? sent.reply : undefined;
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
export function conflictsNow({ base, current, job }: State): readonly FieldConflict[] {
  return base === undefined || current === undefined || current === "gone"
    ? []
    : job.intent.conflicts(base, current);
}

export function refusal({ sent }: State, reply: Reply): Refusal & { method: string } {
  return { ...refusalOf(reply, "writing"), method: sent?.request.method ?? "PUT" };
}

function tagAfter({ sent }: State, ended: Ended): string | undefined {
  if (ended.kind === "written")
    return sent?.reply?.kind === "complete" ? sent.reply.fields.get("etag") : undefined;
  return ended.kind === "as-wanted" || ended.kind === "unchanged" ? ended.customer?.etag : undefined;
}
