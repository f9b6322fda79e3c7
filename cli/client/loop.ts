/**
 * Reads, writes with the tag just read, and reads again until the outcome is known: the I/O around
 * update-step.ts, which decides. Each ending says what became of the write.
 */

import {
  conflictFailure,
  expectationFailure,
  goneFailure,
  notOfferedFailure,
  tagFailure,
  unknownFailure,
} from "../outcome/conflict-failure.ts";
import type { Failure } from "../outcome/failure.ts";
import { requestIdOf, writeFailure } from "../outcome/reply-failure.ts";
import type { Customer } from "./customer.ts";
import { parseEntityTag } from "./entity-tag.ts";
import type { FieldConflict } from "./field-conflicts.ts";
import type { WriteIntent } from "./intent.ts";
import { type Ports, readCurrent } from "./read-customer.ts";
import type { Reply } from "./reply.ts";
import { type ApiRequest, asPlainJson } from "./request.ts";
import { backOffMs } from "./retry-timing.ts";
import { isSuccess } from "./status.ts";
import type { Expectation, OnConflict } from "./step.ts";
import {
  type AfterReading,
  afterLooking,
  afterReading,
  afterWrite,
  type History,
  NO_HISTORY,
  PAGES_MAX,
  recorded,
} from "./step.ts";
import { judgeWrite, unclearReply, type WriteVerdict } from "./verdict.ts";
import { readWhole } from "./whole-customer.ts";

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

export type WriteOutcome =
  /** A reply said so. */
  (
    | { kind: "written" }
    /** Nothing was sent. */
    | { kind: "unchanged" }
    /** The state is as wanted, and no reply says that this is our doing: a 412, or (`unknowns`) a lost reply. */
    | { kind: "as-wanted" }
    /** Nothing of ours was accepted. */
    | {
        kind: "conflict";
        failure: Failure;
        fields: readonly FieldConflict[];
        base: Customer;
        theirs: Customer;
      }
    /** With `unknowns`, a write of ours may have been accepted. */
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

/** Verdicts that leave the outcome open. */
const UNCLEAR: readonly WriteVerdict[] = ["unknown", "doubtful", "pending"];

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
  let lastRequest: ApiRequest | undefined;
  /** Readings that showed a write still pending. */
  let looks = 0;
  /** What was unclear about the latest reply that told no outcome. */
  let unclear = "";

  const facts = (after?: string) => ({
    attempts: history.attempts,
    conflicts: history.conflicts,
    unknowns: history.unknowns,
    before,
    after,
    requestId,
  });
  /** What can't be found out after a write of unknown outcome is exit 8, whatever stood in the way. */
  const stopped = (failure: Failure | undefined, fields: readonly FieldConflict[] = []): WriteOutcome => {
    const unknown = {
      history,
      unclear,
      obstacle: failure,
      fields,
      claims: pin !== undefined || expect.length > 0,
    };
    return {
      kind: "failed",
      failure: failure === undefined || history.unknowns > 0 ? unknownFailure(about, unknown) : failure,
      ...facts(),
    };
  };

  const first = job.base ?? (await readState({ api, deadline }, job));
  if ("exit" in first) return stopped(first);
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
      case "gone":
        return stopped(goneFailure(about, "it was deleted meanwhile"));
      case "not-offered":
        return stopped(notOfferedFailure(about, lastRequest?.method, lastReply));
      case "expectation": {
        const asWanted = intent.isAsWanted(current);
        const shown = current === "gone" ? undefined : current;
        return stopped(expectationFailure(about, { ...step, asWanted, history }, shown));
      }
      case "undecidable":
        return stopped(undefined);
      case "conflict": {
        const theirs = current === "gone" ? base : current;
        const { fields } = step;
        const failure = conflictFailure(about, { history, pin, onConflict, fields, current: theirs.etag });
        return inConflict(failure, fields, theirs);
      }
    }
    if (current === "gone") throw new Error("a step after 404 must end the loop");

    if (step.kind === "pending") {
      if (deadline.remainingMs() < writeMsMin) return stopped(undefined);
      looks += 1;
      await deadline.wait(backOffMs(looks));
      if (deadline.interrupted.aborted) return stopped(interruptedFailure(history));
    } else {
      const parsed = parseEntityTag(pin ?? current.etag);
      if (parsed.kind !== "strong") return stopped(tagFailure(about, parsed));
      const written = await send(parsed.tag, intent.request(current, parsed.tag));
      if (written !== "read-again") return written;
    }
    const again = await readState({ api, deadline }, job, true);
    history = afterLooking(history, !("exit" in again) && again.etag === sentTag);
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
      if (deadline.interrupted.aborted) return stopped(interruptedFailure(history));
      if (history.attempts > 0 && deadline.remainingMs() < writeMsMin) return gaveUp("the time is up");
      if (job.maxAttempts !== undefined && history.attempts >= job.maxAttempts) {
        return gaveUp(`--max-attempts ${job.maxAttempts} is reached`);
      }
      if (history.pages >= PAGES_MAX && lastReply !== undefined) return refusal(lastReply);
      sentTag = tag;
      // Half of the time at most: the other half is for finding out what became of the write.
      const startMs = performance.now();
      const reply: Reply = await api.send(request, deadline, deadline.remainingMs() / 2);
      if (reply.kind === "complete") writeMsMin = Math.max(writeMsMin, 4 * (performance.now() - startMs));
      const named = reply.kind === "complete" ? reply.fields.get("etag") : undefined;
      const ofSuccess = reply.kind === "complete" && isSuccess(reply.status);
      history = recorded(history, judgeWrite(reply, intent.confirms), {
        contradicts: named === tag,
        ofSuccess,
      });
      if (history.last !== undefined && UNCLEAR.includes(history.last)) unclear = unclearReply(reply);
      lastReply = reply;
      lastRequest = request;
      requestId = requestIdOf(reply) ?? requestId;
      if (deadline.interrupted.aborted && history.last !== "accepted") {
        history = afterLooking(history, false);
        return stopped(interruptedFailure(history));
      }
      const retyped = reply.kind === "complete" && reply.status === 415 ? asPlainJson(request) : undefined;
      if (retyped !== undefined) {
        request = retyped;
        continue;
      }
      const next = afterWrite(reply, history, pin !== undefined);
      switch (next.kind) {
        case "written":
          return { kind: "written", ...facts(named) };
        case "stop":
          return refusal(reply);
        case "give-up":
          return gaveUp(next.reason);
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
    return { what: `customer ${id}`, url: api.url, method: lastRequest?.method };
  }

  function inConflict(failure: Failure, fields: readonly FieldConflict[], theirs: Customer): WriteOutcome {
    return history.unknowns > 0
      ? stopped(undefined, fields)
      : { kind: "conflict", failure, fields, base, theirs, ...facts() };
  }

  function refusal(reply: Reply): WriteOutcome {
    if (history.last !== "stale") return stopped(writeFailure(reply, intent.done, subject()));
    const current = reply.kind === "complete" ? reply.fields.get("etag") : undefined;
    const failure = conflictFailure(about, { history, pin, onConflict, fields: [], current, reply });
    return inConflict(failure, [], base);
  }

  /** No time or no attempts left: what the last write came to decides the exit code. */
  function gaveUp(reason: string): WriteOutcome {
    if (history.unknowns > 0) return stopped(undefined);
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
    return inConflict(failure, fields, theirs);
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
  if (!("exit" in state)) return state;
  const refusal = state.exit;
  const atLeast = refusal === "not-allowed" ? fieldsAtLeast : undefined;
  // A deployment may know other names than the registry's: its default set then shows what there is.
  if (atLeast === undefined && (refusal !== "invalid" || fields === undefined)) return state;
  const least = await readCurrent(ports, id, atLeast, persistent);
  return "exit" in least ? state : least;
}

function interruptedFailure(history: History): Failure {
  const message =
    history.unknowns > 0 ? "interrupted while the write was under way" : "interrupted; no write was accepted";
  return { exit: "interrupted", code: "interrupted", message };
}
