/**
 * Reads, writes with the tag just read, and reads again until the outcome is known: the I/O around
 * update-step.ts, which decides. Each ending says what became of the write.
 */
import type { Expectation, OnConflict } from "./commands/options.ts";
import {
  conflictFailure,
  expectationFailure,
  goneFailure,
  notOfferedFailure,
  tagFailure,
  unknownFailure,
} from "./conflict-failure.ts";
import type { Reply } from "./customers-api.ts";
import { parseEntityTag } from "./entity-tag.ts";
import type { Failure } from "./failure.ts";
import { type Ports, readCurrent } from "./read-customer.ts";
import { requestIdOf, writeFailure } from "./reply-failure.ts";
import type { Customer } from "./representation.ts";
import { type ApiRequest, asPlainJson } from "./requests.ts";
import type { FieldConflict } from "./three-way-merge.ts";
import {
  type AfterReading,
  afterReading,
  afterWrite,
  type History,
  judgeWrite,
  NO_HISTORY,
  recorded,
} from "./update-step.ts";
import { readWhole } from "./whole-customer.ts";
import type { WriteIntent } from "./write-intent.ts";

export type WriteJob = {
  id: string;
  intent: WriteIntent;
  onConflict: OnConflict;
  expect: readonly Expectation[];
  /** --if-match: the tag that is sent; a 412 is final. */
  ifMatch?: string | undefined;
  /** Writes that are sent at most. */
  maxAttempts?: number | undefined;
  /** Begins from this reading rather than from a fresh one. */
  base?: Customer | undefined;
};

export type WriteOutcome = (
  | { kind: "written"; confirmedByReading: boolean }
  /** Nothing was sent. */
  | { kind: "unchanged" }
  /** A 412, and yet the state is as wanted: no write of ours is known to have been accepted. */
  | { kind: "as-wanted" }
  | { kind: "conflict"; failure: Failure; fields: readonly FieldConflict[]; base: Customer; theirs: Customer }
  | { kind: "failed"; failure: Failure }
) & {
  attempts: number;
  conflicts: number;
  /** Writes whose reply was lost, and which may have been applied besides. */
  unknowns: number;
  /** The tag that was read first, and the one after the write where a reply told it. */
  before: string | undefined;
  after: string | undefined;
  requestId: string | undefined;
};

/** Time that a second or later write must find, at the least; four times the slowest answered one before it, if that is more. */
const WRITE_MS_MIN = 2000;

export async function writeUntilDecided({ api, deadline }: Ports, job: WriteJob): Promise<WriteOutcome> {
  const { id, intent, onConflict, expect, ifMatch: pin } = job;
  const about = { id, done: intent.done, url: api.url };
  // A write that starts in the last moments would end in an unknown outcome, for want of time to hear of it.
  let writeMsMin = Math.min(WRITE_MS_MIN, deadline.remainingMs() / 4);
  let history: History = NO_HISTORY;
  let before: string | undefined;
  let sentTag: string | undefined;
  let requestId: string | undefined;
  let lastReply: Reply | undefined;

  const facts = (after?: string) => ({
    attempts: history.attempts,
    conflicts: history.conflicts,
    unknowns: history.unknowns,
    before,
    after,
    requestId,
  });
  const failed = (failure: Failure): WriteOutcome => ({ kind: "failed", failure, ...facts() });
  /** What can't be found out after a write of unknown outcome is exit 8, whatever stood in the way. */
  const stopped = (failure: Failure): WriteOutcome =>
    failed(history.unknowns > 0 ? unknownFailure(about, history, failure) : failure);

  const first = job.base ?? (await readState({ api, deadline }, job));
  if ("exit" in first) return failed(first);
  const base = first;
  before = base.etag;
  let current: Customer | "gone" = base;

  for (;;) {
    const step: AfterReading = afterReading(
      { intent, onConflict, expect, pin },
      history,
      base,
      current,
      sentTag,
    );
    switch (step.kind) {
      case "unchanged":
      case "as-wanted":
        return { kind: step.kind, ...facts(current === "gone" ? undefined : current.etag) };
      case "written":
        return {
          kind: "written",
          confirmedByReading: true,
          ...facts(current === "gone" ? undefined : current.etag),
        };
      case "gone":
        return stopped(goneFailure(about, "it was deleted meanwhile"));
      case "not-offered":
        return stopped(notOfferedFailure(about));
      case "expectation":
        return stopped(expectationFailure(about, step, current === "gone" ? undefined : current));
      case "undecidable":
        return failed(unknownFailure(about, history, undefined, step.fields));
      case "conflict": {
        const theirs = current === "gone" ? base : current;
        const failure = conflictFailure(about, {
          history,
          pin,
          onConflict,
          fields: step.fields,
          current: theirs.etag,
        });
        return { kind: "conflict", failure, fields: step.fields, base, theirs, ...facts() };
      }
    }
    if (current === "gone") throw new Error("a step after 404 must end the loop");

    const tag = pin ?? current.etag;
    const parsed = parseEntityTag(tag);
    if (parsed.kind !== "strong") return stopped(tagFailure(about, parsed));
    const written = await send(parsed.tag, intent.request(current, parsed.tag));
    if (written !== "read-again") return written;
    const again = await readState({ api, deadline }, job, true);
    if (!("exit" in again)) current = again;
    else if (again.exit === "not-found") current = "gone";
    else {
      // After a 412 nothing of ours was applied; a conflict that can't be looked at is still a conflict.
      return history.unknowns > 0 || again.exit === "interrupted" ? stopped(again) : gaveUp(again.message);
    }
  }

  /** Sends until there is a verdict: the outcome, or that the state must be looked at. */
  async function send(tag: string, first: ApiRequest): Promise<WriteOutcome | "read-again"> {
    let request = first;
    for (;;) {
      if (history.attempts > 0 && deadline.remainingMs() < writeMsMin) return gaveUp("the time is up");
      if (job.maxAttempts !== undefined && history.attempts >= job.maxAttempts) {
        return gaveUp(`--max-attempts ${job.maxAttempts} is reached`);
      }
      sentTag = tag;
      // Half of the time at most: the other half is for finding out what became of the write.
      const startMs = performance.now();
      const reply: Reply = await api.send(request, deadline, deadline.remainingMs() / 2);
      if (reply.kind === "complete") writeMsMin = Math.max(writeMsMin, 4 * (performance.now() - startMs));
      history = recorded(history, judgeWrite(reply));
      lastReply = reply;
      requestId = requestIdOf(reply) ?? requestId;
      if (deadline.interrupted.aborted && history.last !== "accepted")
        return stopped(interruptedFailure(history));
      const retyped = reply.kind === "complete" && reply.status === 415 ? asPlainJson(request) : undefined;
      if (retyped !== undefined) {
        request = retyped;
        continue;
      }
      const next = afterWrite(reply, history, pin !== undefined);
      switch (next.kind) {
        case "written": {
          const after = reply.kind === "complete" ? reply.fields.get("etag") : undefined;
          return { kind: "written", confirmedByReading: false, ...facts(after) };
        }
        case "stop":
          return refusal(reply);
        case "read-again":
          // Looking once more always pays: a shorter wait rather than none of it.
          await deadline.wait(Math.min(next.waitMs, deadline.remainingMs() / 4));
          return "read-again";
        case "send-again":
          if (next.waitMs >= deadline.remainingMs())
            return stopped(writeFailure(reply, intent.done, subject()));
          await deadline.wait(next.waitMs);
      }
    }
  }

  function subject() {
    return { what: `customer ${id}`, url: api.url };
  }

  function refusal(reply: Reply): WriteOutcome {
    if (history.last !== "stale") return stopped(writeFailure(reply, intent.done, subject()));
    const current = reply.kind === "complete" ? reply.fields.get("etag") : undefined;
    const failure = conflictFailure(about, { history, pin, onConflict, fields: [], current, reply });
    return { kind: "conflict", failure, fields: [], base, theirs: base, ...facts() };
  }

  /** No time or no attempts left: what the last write came to decides the exit code. */
  function gaveUp(reason: string): WriteOutcome {
    if (history.unknowns > 0) return failed(unknownFailure(about, history));
    if (history.last !== "stale" && lastReply !== undefined) return refusal(lastReply);
    const theirs = current === "gone" ? base : current;
    const fields = intent.conflicts(base, theirs);
    const failure = conflictFailure(about, {
      history,
      pin,
      onConflict,
      fields,
      current: theirs.etag,
      reason,
      sentTag,
    });
    return { kind: "conflict", failure, fields, base, theirs, ...facts() };
  }
}

/** What the write needs to be read; where not all of it may be, what will do. @param persistent see readWithRetry. */
export async function readState(
  ports: Ports,
  { id, intent: { fields, fieldsAtLeast } }: Pick<WriteJob, "id" | "intent">,
  persistent = false,
): Promise<Customer | Failure> {
  if (fields === "whole") return readWhole(ports, id, persistent);
  const state = await readCurrent(ports, id, fields, persistent);
  if (!("exit" in state) || state.exit !== "not-allowed" || fieldsAtLeast === undefined) return state;
  const least = await readCurrent(ports, id, fieldsAtLeast, persistent);
  return "exit" in least ? state : least;
}

function interruptedFailure(history: History): Failure {
  const message =
    history.unknowns > 0 ? "interrupted while the write was under way" : "interrupted; no write was accepted";
  return { exit: "interrupted", code: "interrupted", message };
}
