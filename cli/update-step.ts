/** The conflict loop's decisions, as pure functions: what follows a reading, and what follows a write. */
import type { Expectation, OnConflict } from "./commands/options.ts";
import type { Reply } from "./customers-api.ts";
import { serverWaitMs } from "./read-retry.ts";
import { type Customer, memberNamed, plainText } from "./representation.ts";
import { backOffMs } from "./retry-timing.ts";
import type { FieldConflict } from "./three-way-merge.ts";
import type { WriteIntent } from "./write-intent.ts";

/** What a reply says of the write that it answers. */
export type WriteVerdict =
  | "accepted"
  | "stale" // 412
  | "gone" // 404, 410
  | "unknown" // no complete reply, or one that leaves open whether the write was applied
  | "busy" // 429, 503: not applied, and wanted later
  | "not-sent"
  | "refused";

export function judgeWrite(reply: Reply): WriteVerdict {
  if (reply.kind === "no-complete-reply") return reply.sent ? "unknown" : "not-sent";
  const { status } = reply;
  if (status >= 200 && status < 300) return "accepted";
  if (status === 412) return "stale";
  if (status === 404 || status === 410) return "gone";
  if (status === 429 || status === 503) return "busy";
  // A gateway's 502, 504 or a failing server's 500 may come after the write was applied; 501 and 505 can't.
  if (status === 408 || (status >= 500 && status !== 501 && status !== 505)) return "unknown";
  return "refused";
}

export type History = {
  /** Writes that were sent. */
  attempts: number;
  /** Of these, answered with 412. */
  conflicts: number;
  /** Of these, with an outcome that no reply told. */
  unknowns: number;
  /** Sendings in a row that never left. */
  notSent: number;
  last: WriteVerdict | undefined;
};

export const NO_HISTORY: History = { attempts: 0, conflicts: 0, unknowns: 0, notSent: 0, last: undefined };

export function recorded(history: History, verdict: WriteVerdict): History {
  return {
    attempts: history.attempts + (verdict === "not-sent" ? 0 : 1),
    conflicts: history.conflicts + (verdict === "stale" ? 1 : 0),
    unknowns: history.unknowns + (verdict === "unknown" ? 1 : 0),
    notSent: verdict === "not-sent" ? history.notSent + 1 : 0,
    last: verdict,
  };
}

/** Writes in a row that found no connection: after a successful read that is soon hopeless. */
const NOT_SENT_MAX = 3;

export type AfterWrite =
  | { kind: "written" }
  /** Not again blindly: the state decides. */
  | { kind: "read-again"; waitMs: number }
  | { kind: "send-again"; waitMs: number }
  | { kind: "stop" };

/** @param history with this reply already in it. @param pinned --if-match: a 412 is the answer. */
export function afterWrite(reply: Reply, history: History, pinned: boolean): AfterWrite {
  switch (history.last) {
    case "accepted":
      return { kind: "written" };
    case "stale":
      return pinned ? { kind: "stop" } : { kind: "read-again", waitMs: backOffMs(history.conflicts) };
    case "unknown":
      return { kind: "read-again", waitMs: history.unknowns === 1 ? 0 : backOffMs(history.unknowns) };
    case "busy": {
      const askedMs = reply.kind === "complete" ? serverWaitMs(reply.fields) : undefined;
      return { kind: "send-again", waitMs: (askedMs ?? 0) + backOffMs(history.attempts) };
    }
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
  /** A write whose reply was lost is there. */
  | { kind: "written" }
  /** After a 412: the state is as wanted, by whomever. */
  | { kind: "as-wanted" }
  | { kind: "expectation"; field: string; wanted: string; found: string | undefined }
  | { kind: "conflict"; fields: FieldConflict[] }
  /** A write may have been applied and changed again since: no reading can tell. */
  | { kind: "undecidable"; fields: FieldConflict[] }
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
  const { intent } = job;
  if (history.attempts > 0 && intent.isAsWanted(current)) {
    return { kind: history.unknowns > 0 ? "written" : "as-wanted" };
  }
  if (current === "gone") return { kind: "gone" };
  if (history.last === "gone") return { kind: "not-offered" };
  if (history.attempts > 0) {
    const unmoved = current.etag === sentTag;
    if (job.pin !== undefined) return { kind: "undecidable", fields: [] };
    if (!unmoved) {
      const fields = intent.conflicts(base, current);
      const stops = job.onConflict === "fail" || (job.onConflict === "merge" && fields.length > 0);
      if (stops)
        return { kind: history.unknowns > 0 && fields.length > 0 ? "undecidable" : "conflict", fields };
    } else if (history.last === "stale" && job.onConflict === "fail") {
      return { kind: "conflict", fields: [] };
    }
  }
  const unmet = unmetExpectation(job.expect, current);
  if (unmet !== undefined) return { kind: "expectation", ...unmet };
  const pinnedElsewhere = job.pin !== undefined && job.pin !== current.etag;
  if (history.attempts === 0 && intent.isUnchanged(current) && !pinnedElsewhere) return { kind: "unchanged" };
  // A body that was completed from another version than the pinned one would carry that version's values.
  if (pinnedElsewhere && !intent.selfContained) return { kind: "conflict", fields: [] };
  return { kind: "send" };
}

/** Compared as text: `--expect balance=1.10` meets the number 1.10. */
function unmetExpectation(
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
