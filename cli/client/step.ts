/**
 * The conflict loop as one state machine: from a state and what happened to the next state and what to do.
 * It reads, writes with the tag just read, and reads again until the outcome is known. Pure: loop.ts acts.
 */
import { type Customer, memberNamed, plainText, shownCustomer } from "./customer.ts";
import { type EntityTag, parseEntityTag } from "./entity-tag.ts";
import type { FieldConflict } from "./field-conflicts.ts";
import type { WriteIntent } from "./intent.ts";
import type { Reading } from "./read-customer.ts";
import { serverWaitMs } from "./read-retry.ts";
import { type ReadRefusal, type Refusal, refusalOf } from "./refusal.ts";
import { type CompleteReply, type Reply, requestIdOf } from "./reply.ts";
import { type ApiRequest, asPlainJson } from "./request.ts";
import { backOffMs } from "./retry-timing.ts";
import { isSuccess, meaningOf } from "./status.ts";
import { judgeWrite, type WriteVerdict } from "./verdict.ts";

/** Compared as text. */
export type Expectation = { field: string; value: string };

/** What to do when someone else wrote in between. */
export type OnConflict = "reapply" | "merge" | "fail";

export type WriteJob = {
  id: string;
  intent: WriteIntent;
  onConflict: OnConflict;
  /** Checked after every reading: of many who expect the same, one alone succeeds. */
  expect: readonly Expectation[];
  /** The tag that is sent; a 412 is then final. */
  ifMatch?: string | undefined;
  /** Writes that are sent at most. */
  maxAttempts?: number | undefined;
  /** Begins from this reading rather than from a fresh one. */
  base?: Customer | undefined;
};

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

export type WriteOutcome = Ended & {
  /** Writes that were sent. */
  attempts: number;
  /** Of these, answered with 412. */
  conflicts: number;
  /** Of these, without a reply that says what became of them: they may have been applied besides. */
  unknowns: number;
  /** The tag that was read first, and the one after the write where a reply told it. */
  before: string | undefined;
  after: string | undefined;
  requestId: string | undefined;
};

export type Ended =
  /** A reply said so. `customer`: as the write made it, where the reply shows it. */
  | {
      kind: "written";
      customer: Customer | undefined;
      /** The tag of the version that it took the place of. */
      replacedTag: string;
      /** That version, where it was read. */
      replaced: Customer | undefined;
      /** What someone else had changed since the first reading, and this write set. */
      overwritten: readonly FieldConflict[];
    }
  /** The first reading was as wanted; nothing was sent. */
  | { kind: "unchanged"; customer: Customer }
  /**
   * The state is as wanted, and no reply says that this is our doing. A reading can't tell, not even after a lost
   * reply: the tag that our own write would have made is unknown, and someone else may have wanted the same.
   */
  | { kind: "as-wanted"; customer: Customer | undefined }
  | Stopped
  /** A write was sent, and whether it was applied can't be told. `obstacle`: what stood in the way of finding out. */
  | {
      kind: "unknown-outcome";
      /** The latest reply that told no outcome. */
      unclear: Reply | undefined;
      obstacle: Stopped | undefined;
      /** A condition was given: running it again does not mean the same. */
      claims: boolean;
    };

/** Nothing of ours was applied. */
export type Stopped =
  | Conflict
  | {
      kind: "expectation";
      field: string;
      wanted: string;
      found: string | undefined;
      /** The state has the values that were asked for, by someone else's doing. */
      asWanted: boolean;
      /** Nothing was sent yet. */
      atFirst: boolean;
      current: Customer;
    }
  | { kind: "unusable-tag"; tag: Exclude<EntityTag, { kind: "strong" }> }
  /** A later reading answered 404. */
  | { kind: "deleted" }
  /** The write was answered as if there were no such customer, and yet a reading shows it. */
  | { kind: "write-not-found"; method: string; status: number }
  | (ReadRefusal & { method: string });

export type Conflict = {
  kind: "conflict";
  why:
    | "pinned"
    /** By the choice of `onConflict`. */
    | "changed"
    | "time-up"
    | "attempts-used"
    /** Each time the server named the refused tag as the current one. */
    | "contradicted"
    /** After a 412 the customer could not be read. */
    | "unreadable";
  fields: readonly FieldConflict[];
  base: Customer;
  theirs: Customer;
  /** The tag of now, where it is known, and the one that was sent or pinned. */
  currentTag: string | undefined;
  sentTag: string | undefined;
  reply: CompleteReply | undefined;
  unreadable: ReadRefusal | undefined;
};

export type State = {
  readonly job: WriteJob;
  /** Kept for finding out what became of a write. */
  readonly lookingMs: number;
  /** What another write must find, at the least; four times the slowest answered one before it, if that is more. */
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
};

export type History = {
  attempts: number;
  conflicts: number;
  unknowns: number;
  /** Since the last reading, writes that it settles: one may have been applied, unless the tag is unmoved. */
  doubts: number;
  /** Successes in a row that no customer service can have meant. */
  pages: number;
  /** Sendings in a row that never left. */
  notSent: number;
  /** 412s in a row that name, as the current tag, the very one that they refuse. */
  contradictions: number;
  last: WriteVerdict | undefined;
};

type Step = [State, Action];

/** The last fifth of the time is kept for looking, but no more than this. */
const LOOKING_MS_MAX = 5000;
/** A write that starts in the last moments would end in an unknown outcome, for want of time to hear of it. */
const WRITE_MS_MIN = 2000;
/** Writes in a row that found no connection: after a successful read that is soon hopeless. */
const NOT_SENT_MAX = 3;
/** Contradictions in a row: no other writer explains one, and waiting does not stop a proxy from changing tags. */
const CONTRADICTIONS_MAX = 3;
/** HTML pages in a row without any effect: a proxy is answering in place of the service, and waiting does not help. */
const PAGES_MAX = 3;

const INTERRUPTED: Reply = {
  kind: "no-complete-reply",
  sent: false,
  cause: "interrupted",
  detail: "interrupted",
};

const NO_HISTORY: History = {
  attempts: 0,
  conflicts: 0,
  unknowns: 0,
  doubts: 0,
  pages: 0,
  notSent: 0,
  contradictions: 0,
  last: undefined,
};

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
      return end(unlooked(state), refusal(state, INTERRUPTED));
  }
}

function onRead(state: State, event: Extract<Event, { kind: "read" }>): Step {
  const { reading } = event;
  if (state.base === undefined) {
    if (reading.kind !== "read") return end(state, { ...reading, method: "GET" });
    const { customer, requestId } = reading;
    return decide({ ...state, base: customer, current: customer, requestId }, event);
  }
  const unmoved = reading.kind === "read" && reading.customer.etag === state.sent?.tag;
  const next = unmoved ? { ...state, history: { ...state.history, doubts: 0 } } : unlooked(state);
  if (reading.kind === "read") return decide({ ...next, current: reading.customer }, event);
  if (reading.kind === "not-found") return decide({ ...next, current: "gone" }, event);
  if (next.history.unknowns > 0 || reading.kind === "interrupted")
    return end(next, { ...reading, method: "GET" });
  // After a 412 nothing of ours was applied; a conflict that can't be looked at is still a conflict.
  return giveUp(next, "unreadable", reading);
}

function onReplied(state: State, event: Extract<Event, { kind: "replied" }>): Step {
  const { reply, tookMs, remainingMs, chance } = event;
  const { job, sent } = state;
  if (sent === undefined) throw new Error("no write was sent");
  const complete = reply.kind === "complete" ? reply : undefined;
  const verdict = judgeWrite(reply, job.intent.confirms);
  const history = recorded(state.history, verdict, {
    contradicts: complete?.fields.get("etag") === sent.tag,
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
    writeMsMin: Math.max(state.writeMsMin, complete === undefined ? tookMs : 4 * tookMs),
    writeAtRemainingMs: askedMs > 0 ? remainingMs - askedMs : Number.POSITIVE_INFINITY,
  };
  if (complete === undefined && reply.kind === "no-complete-reply" && reply.cause === "interrupted")
    return end(next, refusal(next, reply));
  const retyped = complete?.status === 415 ? asPlainJson(sent.request) : undefined;
  if (retyped !== undefined) return send(next, event, sent.tag, retyped);
  switch (verdict) {
    case "accepted":
      return end(next, {
        kind: "written",
        customer: complete && shownCustomer(complete.text, complete.fields.get("etag")),
        replacedTag: sent.tag,
        replaced: state.current !== "gone" && state.current?.etag === sent.tag ? state.current : undefined,
        overwritten: conflictsNow(next),
      });
    case "stale":
      if (job.ifMatch !== undefined) return end(next, conflict(next, "pinned", []));
      if (history.contradictions >= CONTRADICTIONS_MAX) return giveUp(next, "contradicted");
      return wait(next, event, backOffMs(history.conflicts, chance), "read");
    case "may-arrive":
      return wait(next, event, history.unknowns === 1 ? 0 : backOffMs(history.unknowns, chance), "read");
    case "reading-settles": {
      const waitMs = askedMs + backOffMs(history.attempts, chance);
      // A wait beyond the deadline is not begun; the reading then tells whether anything was written.
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

/** What to do about the state that was read last. */
function decide(state: State, event: Event): Step {
  const { job, history, base, current, sent } = state;
  const { intent, onConflict, expect, ifMatch: pin } = job;
  if (base === undefined || current === undefined) throw new Error("nothing was read");
  if (current === "gone") {
    const done = history.attempts > 0 && !claims(job) && intent.isAsWanted("gone");
    return end(state, done ? { kind: "as-wanted", customer: undefined } : { kind: "deleted" });
  }
  const unmet = unmetExpectation(expect, current);
  if (unmet !== undefined) {
    const asWanted = intent.isAsWanted(current);
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
  const asWanted = intent.isAsWanted(current);
  if (history.last === "gone" && (pin !== undefined || !asWanted)) {
    const status = sent?.reply?.kind === "complete" ? sent.reply.status : 404;
    return end(state, { kind: "write-not-found", method: sent?.request.method ?? "PUT", status });
  }
  const unmoved = current.etag === sent?.tag;
  const unclear = history.last === "may-arrive" || history.last === "reading-settles";
  if (unmoved && isTaken(state)) return lookAgain(state, event);
  if (pin !== undefined)
    return unmoved && history.last === "reading-settles"
      ? sendNext(state, event, current)
      : end(state, undefined);
  // Every accepted write makes a new tag (specification 2.4): under the old one, the lost write is not there.
  if (asWanted && !(unmoved && unclear)) return end(state, { kind: "as-wanted", customer: current });
  if (unmoved)
    return history.last === "stale" && onConflict === "fail"
      ? end(state, conflict(state, "changed", []))
      : sendNext(state, event, current);
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

function isTaken({ history, sent }: State): boolean {
  return history.last === "may-arrive" && sent?.reply?.kind === "complete" && sent.reply.status === 202;
}

/** It would redirect the next write too. */
function isRedirect(reply: Reply): boolean {
  return reply.kind === "complete" && meaningOf(reply.status).kind === "redirected";
}

function sendNext(state: State, event: Event, current: Customer): Step {
  const tag = parseEntityTag(state.job.ifMatch ?? current.etag);
  if (tag.kind !== "strong") return end(state, { kind: "unusable-tag", tag });
  return send(state, event, tag.tag, state.job.intent.request(current, tag.tag));
}

function send(state: State, { remainingMs }: Event, tag: string, request: ApiRequest): Step {
  const { job, history, sent } = state;
  if (history.attempts > 0 && remainingMs < state.writeMsMin) return giveUp(state, "time-up");
  if (job.maxAttempts !== undefined && history.attempts >= job.maxAttempts)
    return giveUp(state, "attempts-used");
  const tooEarly = remainingMs > state.writeAtRemainingMs;
  if (sent?.reply !== undefined && (history.pages >= PAGES_MAX || isRedirect(sent.reply) || tooEarly))
    return end(state, refusal(state, sent.reply));
  const limitMs = Math.max(remainingMs - state.lookingMs, remainingMs / 2);
  return [
    { ...state, sent: { tag, request, reply: undefined } },
    { kind: "write", request, limitMs },
  ];
}

/** Looking once more always pays: before a reading, a shorter wait rather than none of it. */
function wait(state: State, { remainingMs }: Event, ms: number, next: "read" | "write"): Step {
  if (next === "read" && ms === 0) return [state, { kind: "read", persistent: true }];
  const shortened =
    next === "read" ? Math.min(ms, Math.max(remainingMs / 4, remainingMs - state.lookingMs)) : ms;
  return [
    { ...state, next },
    { kind: "wait", ms: shortened },
  ];
}

/** No time or no attempts left: what the last write came to decides. */
function giveUp(state: State, why: Conflict["why"], unreadable?: ReadRefusal): Step {
  const { history, sent } = state;
  if (history.unknowns > 0) return end(state, undefined);
  if (history.last !== "stale" && sent?.reply !== undefined) return end(state, refusal(state, sent.reply));
  return end(state, { ...conflict(state, why, conflictsNow(state)), unreadable });
}

function conflict(state: State, why: Conflict["why"], fields: readonly FieldConflict[]): Conflict {
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

function refusal({ sent }: State, reply: Reply): Refusal & { method: string } {
  return { ...refusalOf(reply, "writing"), method: sent?.request.method ?? "PUT" };
}

/** After a write of unknown outcome nothing may say that nothing was written: the ending becomes the obstacle. */
function end(state: State, ended: Ended | undefined): Step {
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

function tagAfter({ sent }: State, ended: Ended): string | undefined {
  if (ended.kind === "written")
    return sent?.reply?.kind === "complete" ? sent.reply.fields.get("etag") : undefined;
  return ended.kind === "as-wanted" || ended.kind === "unchanged" ? ended.customer?.etag : undefined;
}

/** What someone else changed that this write goes over. */
function conflictsNow({ base, current, job }: State): readonly FieldConflict[] {
  return base === undefined || current === undefined || current === "gone"
    ? []
    : job.intent.conflicts(base, current);
}

/** A version that is named, or a value that is expected, is a claim: of two who make it, one alone may succeed. */
function claims({ ifMatch, expect }: WriteJob): boolean {
  return ifMatch !== undefined || expect.length > 0;
}

/** What a reading would have settled was not seen, or it moved: it may have been applied. */
function unlooked(state: State): State {
  const { history } = state;
  return { ...state, history: { ...history, unknowns: history.unknowns + history.doubts, doubts: 0 } };
}

function recorded(
  history: History,
  verdict: WriteVerdict,
  { contradicts, ofSuccess }: { contradicts: boolean; ofSuccess: boolean },
): History {
  return {
    attempts: history.attempts + (verdict === "not-sent" ? 0 : 1),
    conflicts: history.conflicts + (verdict === "stale" ? 1 : 0),
    unknowns: history.unknowns + (verdict === "may-arrive" ? 1 : 0),
    doubts: history.doubts + (verdict === "reading-settles" ? 1 : 0),
    pages: verdict !== "accepted" && ofSuccess ? history.pages + 1 : 0,
    notSent: verdict === "not-sent" ? history.notSent + 1 : 0,
    contradictions: verdict === "stale" && contradicts ? history.contradictions + 1 : 0,
    last: verdict,
  };
}

/** Compared as text: an expectation of `1.10` is met by the number 1.10. */
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
