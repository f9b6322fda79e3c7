/** The bad endings of a conditional write, in words: what happened, to which customer, and what to do next. */

import type { Customer } from "../client/customer.ts";
import type { EntityTag } from "../client/entity-tag.ts";
import type { FieldConflict } from "../client/field-conflicts.ts";
import { formatJson, type Json } from "../client/json.ts";
import type { Reply } from "../client/reply.ts";
import type { History, OnConflict } from "../client/step.ts";
import type { Failure } from "./failure.ts";
import { nearestOf } from "./nearest.ts";
import { notOfferedHint, writeFailure } from "./reply-failure.ts";

/** `done`: "updated" or "deleted". */
export type About = { id: string; done: string; url: string };

function notDone({ id, done }: About): string {
  return `customer ${id} was not ${done}`;
}

export function goneFailure(about: About, why: string): Failure {
  return {
    exit: "not-found",
    code: "customer-not-found",
    message: `${notDone(about)}: ${why}`,
    hint: `Check the id, and that ${about.url} and the credentials belong to the right tenant.`,
  };
}

/** The write was answered as if there were no such customer, and yet a reading shows it. */
export function notOfferedFailure(
  about: About,
  method: string | undefined,
  reply: Reply | undefined,
): Failure {
  const status = reply?.kind === "complete" ? reply.status : 404;
  return {
    exit: "failure",
    code: "not-offered",
    message: `${notDone(about)}: ${about.url} answers ${status} to ${method ?? "this kind of write"}, though the customer exists`,
    hint: notOfferedHint(method),
  };
}

export type UnmetExpectation = {
  field: string;
  wanted: string;
  found: string | undefined;
  /** The state is what the command wanted, and not by a write of it that is known to be accepted. */
  asWanted?: boolean;
  history?: History;
};

export function expectationFailure(
  about: About,
  { field, wanted, found, asWanted = false, history }: UnmetExpectation,
  current: Customer | undefined,
): Failure {
  const failure = { exit: "conflict", code: "expectation-failed" } as const;
  if (found === undefined) {
    const names = [...(current?.value.keys() ?? [])];
    const near = nearestOf(field, names);
    return {
      // A loop that tries again after a conflict would never end. What was there at first was taken away by someone.
      ...(history === undefined || history.attempts === 0
        ? ({ exit: "usage", code: "usage" } as const)
        : failure),
      message: `${notDone(about)}: --expect ${field}=…, but the server shows no member "${field}"`,
      hint: near === undefined ? `It shows: ${names.join(", ")}.` : `Did you mean "${near}"?`,
    };
  }
  const meanwhile = history !== undefined && history.conflicts > 0 ? " now" : "";
  return {
    ...failure,
    message: `${notDone(about)}: ${field} was expected to be ${JSON.stringify(wanted)} and is${meanwhile} ${JSON.stringify(found)}`,
    hint: asWanted
      ? "It has the values that you asked for, set by someone else (or by a copy of this request, where a proxy repeats requests): --expect lets one writer alone succeed."
      : "Look at the customer as it is now, and decide anew.",
  };
}

export function tagFailure(about: About, { kind, tag = "" }: EntityTag & { tag?: string }): Failure {
  const seen = {
    weak: `its entity-tag came weak (${tag}), and a weak tag can't be the condition of a write`,
    missing: "it came without an entity-tag, so a write could not be made conditional",
    malformed: `its ETag header is no entity-tag (${tag})`,
    strong: "",
  }[kind];
  return {
    exit: "failure",
    code: `etag-${kind}`,
    message: `${notDone(about)}: ${seen}; nothing was sent`,
    hint:
      kind === "missing"
        ? "A proxy or cache on the way strips ETag, or this is not the base URL of a customer service; customers doctor compares the ways."
        : "A proxy that compresses or rewrites replies does this (nginx: gzip on; Apache: mod_deflate; Cloudflare and other CDNs: compression, minification). Switch it off for these paths (nginx: gzip off; a Cache-Control: no-transform reply header), or go round the proxy with --url. customers doctor shows which way weakens it.",
  };
}

export type ConflictFacts = {
  history: History;
  pin: string | undefined;
  onConflict: OnConflict;
  fields: readonly FieldConflict[];
  /** The tag of now, where it is known. */
  current: string | undefined;
  /** Why it was given up, where that was not a matter of --on-conflict. */
  reason?: string;
  sentTag?: string | undefined;
  reply?: Reply;
};

export function conflictFailure(about: About, facts: ConflictFacts): Failure {
  const { history, pin, onConflict, fields, current, reason, sentTag, reply } = facts;
  const { id, done } = about;
  const shown =
    reply === undefined ? undefined : writeFailure(reply, done, { what: `customer ${id}`, url: about.url });
  const failure: Failure = {
    exit: "conflict",
    code: shown?.code.startsWith("http-") === false ? shown.code : "conflict",
    message: `${notDone(about)}: ${whatHappened()}`,
    hint: hint(),
    details: [...fieldLines(fields), ...(shown?.details ?? [])],
  };
  if (shown?.problem !== undefined) failure.problem = shown.problem;
  if (shown?.requestId !== undefined) failure.requestId = shown.requestId;
  return failure;

  function whatHappened(): string {
    if (pin !== undefined) {
      const now = current === undefined ? "" : `; its tag is now ${current}`;
      return `it is no longer the version ${pin} that --if-match names${now}`;
    }
    if (reason !== undefined) {
      return `it was refused (412) in ${history.conflicts} of ${counted(history.attempts, "attempt")}, and ${reason}`;
    }
    const whose =
      fields.length === 0
        ? "someone else changed it"
        : `someone else changed ${fields.map(({ field }) => field).join(", ")}`;
    return `${whose} meanwhile (--on-conflict ${onConflict})`;
  }

  function hint(): string {
    if (pin !== undefined) return "Read it again, decide anew, and give the new tag.";
    if (reason !== undefined && current !== undefined && current === sentTag) {
      return `The server refuses ${current}, the very tag that it still shows: a proxy changes If-Match on the way, or a cache answers the reads. customers doctor looks for both.`;
    }
    if (reason !== undefined)
      return "Others write to it all the time: give it more time with --timeout, or more --max-attempts.";
    return done === "deleted"
      ? "Look at it as it is now, and run it again; with --yes --on-conflict reapply it is deleted whatever others changed."
      : "Decide which value is right: run it again to look anew, or with --on-conflict reapply to set yours.";
  }
}

export type UnknownFacts = {
  history: History;
  /** What was unclear about the latest reply that told no outcome. */
  unclear: string;
  /** What stood in the way of finding out, where it was not the state itself. */
  obstacle?: Failure | undefined;
  fields?: readonly FieldConflict[];
  /** --expect or --if-match: running it again does not mean the same. */
  claims: boolean;
};

/**
 * A write was sent, and whether it was applied can't be told: the reading failed, or shows a state that
 * both outcomes could have led to.
 */
export function unknownFailure(about: About, facts: UnknownFacts): Failure {
  const { history, unclear, obstacle, fields = [], claims } = facts;
  const { id, done } = about;
  const then = obstacle === undefined ? "" : `; then: ${whyNot(about, obstacle)}`;
  const failure: Failure = {
    exit: obstacle?.exit === "interrupted" ? "interrupted" : "unknown-outcome",
    code: "unknown-outcome",
    message: `unknown outcome: whether customer ${id} was ${done} can't be told: ${counted(history.unknowns, "write")} of ${history.attempts} had no complete or no clear reply (${unclear})${then}`,
    hint: claims
      ? "Look at the customer, and decide. Running it again is safe, but once the write is there the condition (--expect, --if-match) no longer holds: exit 5 then does not tell whose write it is."
      : "Running it again is safe: it reads first, and the write is conditional.",
    details: [...fieldLines(fields), ...(obstacle?.details ?? [])],
  };
  if (obstacle?.requestId !== undefined) failure.requestId = obstacle.requestId;
  if (obstacle?.problem !== undefined) failure.problem = obstacle.problem;
  return failure;
}

/** Without the claim that nothing was written, which does not hold any more. */
function whyNot(about: About, { message }: Failure): string {
  const claim = `${notDone(about)}: `;
  const why = message.startsWith(claim) ? message.slice(claim.length) : message;
  return why.replace(/; nothing was (?:sent|written)$/, "");
}

/** base / theirs / mine, a line each. */
export function fieldLines(fields: readonly FieldConflict[]): string[] {
  const text = (value: Json | undefined) => (value === undefined ? "(absent)" : formatJson(value));
  return fields.flatMap(({ field, base, theirs, mine }) => [
    `  ${field}`,
    `    base:   ${text(base)}`,
    `    theirs: ${text(theirs)}`,
    ...(mine === undefined ? [] : [`    mine:   ${text(mine)}`]),
  ]);
}

export function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}
