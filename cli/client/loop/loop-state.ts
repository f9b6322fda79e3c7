/** What the conflict loop knows between two events, and what it counts. */
import type { Customer } from "../customer.ts";
import type { NamedChanges } from "../named-changes.ts";
import type { Reading } from "../read-customer.ts";
import type { CompleteReply, Reply } from "../wire/reply.ts";
import type { ApiRequest } from "../wire/request.ts";
import type { WriteVerdict } from "./verdict.ts";
import type { WriteJob } from "./write-job.ts";
import type { WriteOutcome } from "./write-outcome.ts";

export type Event = {
  /** What the deadline leaves. */
  remainingMs: number;
  /** From 0 to below 1, for the jitter of a back-off. */
  chance: number;
} & (
  | { kind: "read"; reading: Reading }
  | { kind: "replied"; reply: Reply; tookMs: number }
  /** The time of a wait is up. */
  | { kind: "timeUp" }
  /** The operator interrupted a wait. */
  | { kind: "interrupted" }
);

export type Action =
  /** `persistent`: the reading decides what became of a write, so it is tried until the deadline. */
  | { kind: "read"; persistent: boolean }
  | { kind: "write"; request: ApiRequest; limitMs: number }
  | { kind: "wait"; ms: number }
  | { kind: "end"; outcome: WriteOutcome };

export type Step = [State, Action];

/** Undefined where none came to the last write, or nothing was sent. */
export function lastReply({ sent }: State): CompleteReply | undefined {
  return sent?.reply?.kind === "complete" ? sent.reply : undefined;
}

export type State = {
  readonly job: WriteJob;
  /** Kept for finding out what became of a write. */
  readonly lookingMs: number;
  /**
   * What another write must find, at the least; four times the slowest answered one before it, if that is
   * more.
   */
  readonly writeMsMin: number;
  readonly history: History;
  /** What the first reading showed, and the latest. */
  readonly base: Customer | undefined;
  readonly current: Customer | "gone" | undefined;
  readonly sent: { tag: string; request: ApiRequest; reply: Reply | undefined } | undefined;
  readonly unclear: Reply | undefined;
  /** Readings that showed a taken write (202) still pending. */
  readonly looks: number;
  /** What follows the wait. */
  readonly next: "read" | "write";
  /** The server asked not to be written to before this little time is left. */
  readonly writeAtRemainingMs: number;
  readonly requestId: string | undefined;
  /** Who changed the customer since the first reading, as far as the server says it. */
  readonly changes: NamedChanges;
};

type History = {
  attempts: number;
  conflicts: number;
  unknowns: number;
  /**
   * Since the last reading, writes that it settles: one may have been applied, unless the tag is unmoved.
   */
  doubts: number;
  /** Those that a reading under an unmoved tag settled: a 412 or 404 after it may be the doing of a late one. */
  settled: number;
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
  doubts: 0,
  settled: 0,
  pages: 0,
  notSent: 0,
  contradictions: 0,
  last: undefined,
};

export function recorded(
  history: History,
  verdict: WriteVerdict,
  { contradicts, ofSuccess }: { contradicts: boolean; ofSuccess: boolean },
): History {
  const stale = verdict === "stale";
  const moved = stale || verdict === "gone";
  return {
    attempts: history.attempts + (verdict === "not-sent" ? 0 : 1),
    conflicts: history.conflicts + (stale ? 1 : 0),
    unknowns: history.unknowns + (verdict === "may-arrive" ? 1 : moved ? history.settled : 0),
    doubts: history.doubts + (verdict === "reading-settles" ? 1 : 0),
    settled: moved ? 0 : history.settled,
    pages: verdict !== "accepted" && ofSuccess ? history.pages + 1 : 0,
    notSent: verdict === "not-sent" ? history.notSent + 1 : 0,
    contradictions: stale && contradicts ? history.contradictions + 1 : 0,
    last: verdict,
  };
}

/** What a reading would have settled was not seen, or it moved: it may have been applied. */
export function unlooked(state: State): State {
  const { history } = state;
  return { ...state, history: { ...history, unknowns: history.unknowns + history.doubts, doubts: 0 } };
}
