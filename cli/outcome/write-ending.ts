/** The endings of a conditional write, in words: what happened, to which customer, and what to do next. */
import type { Creation } from "../client/creation.ts";
import type { Customer } from "../client/customer.ts";
import type { OnConflict } from "../client/loop/write-job.ts";
import { type Conflict, isDone, type Stopped, type WriteOutcome } from "../client/loop/write-outcome.ts";
import type { NamedChanges } from "../client/named-changes.ts";
import type { EntityTag } from "../client/wire/entity-tag.ts";
import { failedBy, type Reply, requestIdOf } from "../client/wire/reply.ts";
import { amount } from "./amount.ts";
import { type Failure, failure } from "./failure.ts";
import { nearestOf } from "./nearest.ts";
import {
  inOneSentence,
  notOfferedHint,
  type Reason,
  readReason,
  type Subject,
  unclearReply,
  writeFailure,
  writeReason,
} from "./reply-failure.ts";
import { fieldLines } from "./value-text.ts";
import { whoChangedTexts } from "./who-changed.ts";

/** `done`: "updated" or "deleted". */
export type About = {
  id: string;
  done: string;
  url: string;
  onConflict: OnConflict;
  /** Of the pinned version, in words that continue "the version T": where it comes from. */
  pin?: string;
};

export type BadOutcome = Extract<WriteOutcome, { kind: Stopped["kind"] | "unknown-outcome" }>;

/** Undefined: the customer is as wanted. */
export function badOutcome(outcome: WriteOutcome): BadOutcome | undefined {
  return isDone(outcome) ? undefined : outcome;
}

export function writeEnding(about: About, outcome: BadOutcome): Failure {
  const ending =
    outcome.kind === "unknown-outcome"
      ? unknownEnding(about, outcome)
      : inOneSentence(reasonOf(about, outcome, outcome));
  const { requestId } = outcome;
  const identified =
    ending.requestId === undefined && requestId !== undefined ? { ...ending, requestId } : ending;
  return outcome.changes.length === 0 ? identified : withChanges(identified, outcome);
}

function withChanges(ending: Failure, { changes, moreChanges }: NamedChanges): Failure {
  const lines = whoChangedTexts({ changes, moreChanges }).map((text) => `  ${text}`);
  return { ...ending, changes: { changes, moreChanges }, details: [...(ending.details ?? []), ...lines] };
}

type Counts = Pick<WriteOutcome, "attempts" | "conflicts" | "unknowns">;

function reasonOf(about: About, stopped: Stopped, counts: Counts): Reason {
  const claim = `customer ${about.id} was not ${about.done}`;
  const subject: Subject = { what: `customer ${about.id}`, url: about.url };
  switch (stopped.kind) {
    case "conflict":
      return { claim, ...conflictReason(about, stopped, counts) };
    case "expectation":
      return { claim, ...expectationReason(stopped, counts) };
    case "unusable-tag":
      return { claim, ...tagReason(stopped.tag), tail: "; nothing was sent" };
    case "deleted":
      return {
        exit: "not-found",
        code: "customer-not-found",
        claim,
        why: "it was deleted meanwhile",
        hint: `Check the id, and that ${about.url} and the credentials belong to the right tenant.`,
      };
    case "write-not-found":
      return {
        exit: "failure",
        code: "not-offered",
        claim,
        why: `${about.url} answers ${stopped.reply.status} to ${stopped.method}, though the customer exists`,
        hint: notOfferedHint(stopped.method),
      };
    case "interrupted":
      return {
        exit: "interrupted",
        code: "interrupted",
        claim,
        why: "interrupted",
        tail: counts.attempts === 0 ? "; nothing was written" : "; no write was accepted",
      };
    case "mistaken":
      return readReason(stopped, subject);
    default:
      return stopped.during === "reading"
        ? readReason(stopped, subject)
        : writeReason(stopped, about.done, { ...subject, method: stopped.method });
  }
}

type Why = Omit<Reason, "claim">;

function expectationReason(stopped: Extract<Stopped, { kind: "expectation" }>, { conflicts }: Counts): Why {
  const { field, wanted, found, asWanted, atFirst, current } = stopped;
  if (found === undefined) {
    const names = [...current.value.keys()];
    const near = nearestOf(field, names);
    return {
      // A loop that tries again after a conflict would never end. What was there at first was taken away by
      // someone.
      ...(atFirst
        ? ({ exit: "usage", code: "usage" } as const)
        : ({ exit: "conflict", code: "expectation-failed" } as const)),
      why: `--expect ${field}=…, but the server shows no member "${field}"`,
      hint: near === undefined ? `It shows: ${names.join(", ")}.` : `Did you mean "${near}"?`,
    };
  }
  return {
    exit: "conflict",
    code: "expectation-failed",
    why: `${field} was expected to be ${JSON.stringify(wanted)} and is${conflicts > 0 ? " now" : ""} ${JSON.stringify(found)}`,
    hint:
      asWanted && !atFirst
        ? "It has the values that you asked for, set by someone else (or by a copy of this request, where a proxy repeats requests): --expect lets one writer alone succeed."
        : "Look at the customer as it is now, and decide again.",
  };
}

function tagReason(tag: Exclude<EntityTag, { kind: "strong" }>): Why {
  const proxies =
    "A proxy that compresses or rewrites replies does this (nginx: gzip on; Apache: mod_deflate; Cloudflare and other CDNs: compression, minification). Switch it off for these paths (nginx: gzip off; a Cache-Control: no-transform reply header), or go round the proxy with --url. customers doctor shows which way weakens it.";
  const code = `etag-${tag.kind}`;
  if (tag.kind === "missing")
    return {
      exit: "failure",
      code,
      why: "it came without an entity-tag, so a write could not be made conditional",
      hint: "A proxy or cache on the way strips ETag, or this is not the base URL of a customer service; customers doctor compares the ways.",
    };
  const why =
    tag.kind === "weak"
      ? `its entity-tag came weak (${tag.tag}), and a weak tag can't be the condition of a write`
      : `its ETag header is no entity-tag (${tag.tag})`;
  return { exit: "failure", code, why, hint: proxies };
}

function conflictReason(
  { id, done, url, onConflict, pin = "that --if-match names" }: About,
  conflict: Conflict,
  counts: Counts,
): Why {
  const { why, fields, currentTag, sentTag, reply } = conflict;
  const shown =
    reply === undefined
      ? undefined
      : writeFailure({ kind: "stale", during: "writing", reply }, done, { what: `customer ${id}`, url });
  const unreadable = conflict.unreadable && readReason(conflict.unreadable, { what: `customer ${id}`, url });
  const reason: Why = {
    exit: "conflict",
    code: shown?.code.startsWith("http-") === false ? shown.code : "conflict",
    why: whatHappened(),
    hint: hint(),
    details: [...fieldLines(fields), ...(shown?.details ?? [])],
  };
  if (shown?.problem !== undefined) reason.problem = shown.problem;
  return reason;

  function whatHappened(): string {
    const refused = `it was refused (412) in ${counts.conflicts} of ${amount(counts.attempts, "attempt")}, and`;
    switch (why) {
      case "pinned":
        return `it is no longer the version ${sentTag} ${pin}${currentTag === undefined ? "" : `; its tag is now ${currentTag}`}`;
      case "changed": {
        const what = fields.length === 0 ? "it" : fields.map(({ field }) => field).join(", ");
        return `someone else changed ${what} meanwhile (--on-conflict ${onConflict})`;
      }
      case "time-up":
        return `${refused} the time is up`;
      case "attempts-used":
        return `${refused} --max-attempts ${counts.attempts} is reached`;
      case "contradicted":
        return `${refused} each time the server named the refused tag as the current one`;
      case "unreadable": {
        return `${refused} ${unreadable === undefined ? "it could not be read" : inOneSentence(unreadable).message}`;
      }
    }
  }

  function hint(): string {
    if (why === "pinned") return "Read it again, decide again, and give the new tag.";
    if (why === "changed")
      return done === "deleted"
        ? "Look at it as it is now, and run it again; with --yes --on-conflict reapply it is deleted whatever others changed."
        : "Decide which value is right: run it again to see the values of now, or with --on-conflict reapply to set yours.";
    if (unreadable?.hint !== undefined) return unreadable.hint;
    return currentTag !== undefined && currentTag === sentTag
      ? `The server refuses ${currentTag}, the very tag that it still shows: a proxy changes If-Match on the way, or a cache answers the reads. customers doctor looks for both.`
      : "Others write to it all the time: give it more time with --timeout, or more --max-attempts.";
  }
}

/**
 * A write was sent, and it is not known whether it was applied: the reading failed, or shows a state that
 * both outcomes could have led to.
 */
function unknownEnding(about: About, outcome: Extract<WriteOutcome, { kind: "unknown-outcome" }>): Failure {
  const { unclear, obstacle, claims, attempts, unknowns } = outcome;
  const reason = obstacle === undefined ? undefined : reasonOf(about, obstacle, outcome);
  // A conflict shows itself by its fields, and one reply is not described twice; what else stood in the way is said.
  const isSaid =
    obstacle !== undefined && "reply" in obstacle && unclear !== undefined && isSame(obstacle.reply, unclear);
  const then =
    reason === undefined || obstacle?.kind === "conflict" || isSaid
      ? ""
      : `; then: ${reason.claim.endsWith(` was not ${about.done}`) ? "" : `${reason.claim}: `}${reason.why}`;
  const replies = unclear === undefined ? "" : ` (${unclearReply(unclear)})`;
  const ending: Failure = {
    kind: "failure",
    exit: reason?.exit === "interrupted" ? "interrupted" : "unknown-outcome",
    code: "unknown-outcome",
    message: `unknown outcome: it is not known whether customer ${about.id} was ${about.done}: ${amount(unknowns, "write")} of ${attempts} had no clear reply${replies}${then}`,
    hint: claims
      ? "Look at the customer, and decide. Running it again is safe; exit 5 may then mean that the first write was applied, and changed what the condition (--expect, --if-match) names."
      : "Running it again is safe: it reads first, and the write is conditional.",
    details: reason?.details ?? [],
  };
  if (reason?.requestId !== undefined) ending.requestId = reason.requestId;
  if (reason?.problem !== undefined) ending.problem = reason.problem;
  return ending;
}

function isSame(one: Reply | undefined, other: Reply): boolean {
  return (
    one === other || (one !== undefined && [one, other].every((reply) => failedBy(reply, "interrupted")))
  );
}

/** An expectation that the first reading does not meet, before anything is sent. */
export function unmetAtFirst(
  about: About,
  unmet: { field: string; wanted: string; found: string | undefined },
  current: Customer,
): Failure {
  const stopped = { kind: "expectation", ...unmet, asWanted: false, atFirst: true, current } as const;
  return inOneSentence(reasonOf(about, stopped, { attempts: 0, conflicts: 0, unknowns: 0 }));
}

/** The version that --if-match names is not the one that was read. */
export function pinnedElsewhere(about: About, current: Customer, pin: string): Failure {
  const conflict: Conflict = {
    kind: "conflict",
    why: "pinned",
    fields: [],
    base: current,
    theirs: current,
    currentTag: current.etag,
    sentTag: pin,
    reply: undefined,
    unreadable: undefined,
  };
  return inOneSentence(reasonOf(about, conflict, { attempts: 0, conflicts: 0, unknowns: 0 }));
}

/** @param what `the customer ada@example.com`. @param key the one that it was sent with. */
export function creationEnding(
  creation: Exclude<Creation, { kind: "created" }>,
  subject: Subject,
  key: string | undefined,
): Failure {
  if (creation.kind !== "unknown-outcome") return writeFailure(creation, "created", subject);
  const { unclear } = creation;
  const interrupted = unclear.kind === "no-complete-reply" && unclear.cause === "interrupted";
  const message = `unknown outcome: it is not known whether ${subject.what} was created: ${unclearReply(unclear)}`;
  const hint =
    key === undefined
      ? undefined
      : `Run it again with --idempotency-key ${key}: a server that knows Idempotency-Key then creates it once, and answers with the one that it has.`;
  const ending = failure("unknown-outcome", message, hint);
  const requestId = requestIdOf(unclear);
  return {
    ...ending,
    exit: interrupted ? "interrupted" : "unknown-outcome",
    ...(requestId === undefined ? {} : { requestId }),
  };
}
