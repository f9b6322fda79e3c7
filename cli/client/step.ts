/** The conflict loop's decisions, as pure functions: what follows a reading, and what follows a write. */

import { type Customer, memberNamed, plainText } from "./customer.ts";
import type { FieldConflict } from "./field-conflicts.ts";
import type { WriteIntent } from "./intent.ts";
import { serverWaitMs } from "./read-retry.ts";
import type { Reply } from "./reply.ts";
import { backOffMs } from "./retry-timing.ts";
import type { WriteVerdict } from "./verdict.ts";

/** Compared as text. */
export type Expectation = { field: string; value: string };

/** What to do when someone else wrote in between. */
export type OnConflict = "reapply" | "merge" | "fail";

export type History = {
  /** Writes that were sent. */
  attempts: number;
  /** Of these, answered with 412. */
  conflicts: number;
  /** Of these, with an outcome that no reply told. */
  unknowns: number;
  /** Of these, doubtful ones since the last reading: one may have been applied, unless the tag is unmoved. */
  doubtful: number;
  /** Successes in a row that no customer service can have meant. */
  pages: number;
  /** Sendings in a row that never left. */
  notSent: number;
  /** 412s in a row that name, as the current tag, the very one that they refuse. */
  contradictions: number;
  last: WriteVerdict | undefined;
};

export const NO_HISTORY: History = {
  attempts: 0,
  conflicts: 0,
  unknowns: 0,
  doubtful: 0,
  pages: 0,
  notSent: 0,
  contradictions: 0,
  last: undefined,
};

/** @param contradicts the reply names, as the current tag, the very one that was sent. @param ofSuccess its status is. */
export function recorded(
  history: History,
  verdict: WriteVerdict,
  { contradicts = false, ofSuccess = false } = {},
): History {
  return {
    attempts: history.attempts + (verdict === "not-sent" ? 0 : 1),
    conflicts: history.conflicts + (verdict === "stale" ? 1 : 0),
    unknowns: history.unknowns + (verdict === "unknown" || verdict === "pending" ? 1 : 0),
    doubtful: history.doubtful + (verdict === "doubtful" ? 1 : 0),
    pages: verdict !== "accepted" && ofSuccess ? history.pages + 1 : 0,
    notSent: verdict === "not-sent" ? history.notSent + 1 : 0,
    contradictions: verdict === "stale" && contradicts ? history.contradictions + 1 : 0,
    last: verdict,
  };
}

/** @param unmoved the reading showed the tag that was sent: of what was doubtful, nothing is there. */
export function afterLooking(history: History, unmoved: boolean): History {
  return {
    ...history,
    unknowns: history.unknowns + (unmoved ? 0 : history.doubtful),
    doubtful: 0,
  };
}

/** Writes in a row that found no connection: after a successful read that is soon hopeless. */
const NOT_SENT_MAX = 3;
/** Contradictions in a row: no other writer explains one, and no waiting mends what changes tags on the way. */
const CONTRADICTIONS_MAX = 3;
/** Pages in a row that nothing came of: what shows them is in the way, and waiting mends it no better. */
export const PAGES_MAX = 3;

export type AfterWrite =
  | { kind: "written" }
  /** Not again blindly: the state decides. */
  | { kind: "read-again"; waitMs: number }
  | { kind: "send-again"; waitMs: number }
  | { kind: "stop" }
  | { kind: "give-up"; reason: string };

/** @param history with this reply already in it. @param pinned --if-match: a 412 is the answer. */
export function afterWrite(reply: Reply, history: History, pinned: boolean): AfterWrite {
  switch (history.last) {
    case "accepted":
      return { kind: "written" };
    case "stale":
      if (pinned) return { kind: "stop" };
      return history.contradictions < CONTRADICTIONS_MAX
        ? { kind: "read-again", waitMs: backOffMs(history.conflicts) }
        : { kind: "give-up", reason: "each time the server named the refused tag as the current one" };
    case "pending":
    case "unknown":
      return { kind: "read-again", waitMs: history.unknowns === 1 ? 0 : backOffMs(history.unknowns) };
    case "busy": {
      const askedMs = reply.kind === "complete" ? serverWaitMs(reply.fields) : undefined;
      return { kind: "send-again", waitMs: (askedMs ?? 0) + backOffMs(history.attempts) };
    }
    case "doubtful":
      return { kind: "read-again", waitMs: backOffMs(history.attempts) };
    case "not-sent":
      return history.notSent < NOT_SENT_MAX
        ? { kind: "send-again", waitMs: backOffMs(history.notSent) }
        : { kind: "stop" };
    case "gone":
      return { kind: "read-again", waitMs: 0 };
    default:
      return { kind: "stop" };
  }
}

export type AfterReading =
  | { kind: "send" }
  /** Before anything was sent: the state is as wanted. */
  | { kind: "unchanged" }
  /**
   * After a write: the state is as wanted, by whomever. A reading can't tell, not even after a lost reply: the
   * tag that our own write would have made is unknown, and someone else may have wanted the same.
   */
  | { kind: "as-wanted" }
  | { kind: "expectation"; field: string; wanted: string; found: string | undefined }
  | { kind: "conflict"; fields: FieldConflict[] }
  /** The server has taken the write, and not applied it yet: sent again, it could be applied twice. */
  | { kind: "pending" }
  /** --if-match, and a write of unknown outcome: what is there now may be ours or another's. */
  | { kind: "undecidable" }
  | { kind: "gone" }
  /** The write was answered with 404, and yet the customer is there. */
  | { kind: "not-offered" };

export type Job = {
  intent: WriteIntent;
  onConflict: OnConflict;
  expect: readonly Expectation[];
  /** --if-match. */
  pin: string | undefined;
};

/**
 * What to do about a state that was read. Where a write of unknown outcome went before, whoever acts on this
 * must not say that nothing was written.
 * @param base what the first reading showed. @param current the latest one; "gone" after a 404.
 * @param sentTag the tag of the last write; undefined before the first.
 */
export function afterReading(
  job: Job,
  history: History,
  base: Customer,
  current: Customer | "gone",
  sentTag: string | undefined,
): AfterReading {
  const { intent, onConflict, expect, pin } = job;
  // A version that is named, or a value that is expected, is a claim: of two who make it, one alone may succeed.
  const claims = pin !== undefined || expect.length > 0;
  if (current === "gone") {
    if (pin !== undefined && history.unknowns > 0) return { kind: "undecidable" };
    return { kind: history.attempts > 0 && !claims && intent.isAsWanted("gone") ? "as-wanted" : "gone" };
  }
  const unmet = unmetExpectation(expect, current);
  if (unmet !== undefined) return { kind: "expectation", ...unmet };
  if (history.attempts === 0) return atFirst(job, current);
  if (history.last === "gone" && (pin !== undefined || !intent.isAsWanted(current)))
    return { kind: "not-offered" };
  const unmoved = current.etag === sentTag;
  if (unmoved && history.last === "pending") return { kind: "pending" };
  if (pin !== undefined)
    return unmoved && history.last === "doubtful" ? { kind: "send" } : { kind: "undecidable" };
  // Every accepted write makes a new tag (specification 2.4): under the old one, the lost write is not there.
  if (intent.isAsWanted(current) && !(unmoved && (history.last === "unknown" || history.last === "doubtful")))
    return { kind: "as-wanted" };
  if (unmoved) {
    return history.last === "stale" && onConflict === "fail"
      ? { kind: "conflict", fields: [] }
      : { kind: "send" };
  }
  const fields = intent.conflicts(base, current);
  const stops = onConflict === "fail" || (onConflict === "merge" && fields.length > 0);
  return stops ? { kind: "conflict", fields } : { kind: "send" };
}

function atFirst({ intent, pin }: Job, current: Customer): AfterReading {
  const pinnedElsewhere = pin !== undefined && pin !== current.etag;
  if (intent.isUnchanged(current) && !pinnedElsewhere) return { kind: "unchanged" };
  // A body that was completed from another version than the pinned one would carry that version's values.
  if (pinnedElsewhere && !intent.selfContained) return { kind: "conflict", fields: [] };
  return { kind: "send" };
}

/** Compared as text: `--expect balance=1.10` meets the number 1.10. */
export function unmetExpectation(
  expect: readonly Expectation[],
  current: Customer,
): { field: string; wanted: string; found: string | undefined } | undefined {
  for (const { field, value } of expect) {
    const member = memberNamed(current.value, field);
    const found = member === undefined ? undefined : plainText(member.value);
    if (found !== value) return { field, wanted: value, found };
  }
  return undefined;
}
