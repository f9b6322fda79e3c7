/** Sends the rows of an import, with a journal of what came of each. */

import { formatJson, type Json, JsonNumber, type JsonObject } from "../client/json.ts";
import type { OnConflict } from "../client/loop/write-job.ts";
import { backOffMs } from "../client/wire/retry-timing.ts";
import type { Invocation } from "../invocation.ts";
import { type Failure, failure } from "../outcome/failure.ts";
import { reason, resultOfCreation, resultOfWrite } from "../outcome/write-result.ts";
import { maskSecrets } from "../output/messages.ts";
import { showProgress } from "../output/progress.ts";
import type { FinalState, Journal, Remark } from "./journal.ts";
import { emailOf, type Match, matchByEmail } from "./match.ts";
import { forEachConcurrently } from "./pool.ts";
import { createRow, type RowContext, type RowOutcome, stopsAll, updateRow } from "./row.ts";
import type { Row } from "./rows.ts";

export type ImportPlan = {
  rows: AsyncIterable<Row>;
  total: number;
  journal: Journal;
  concurrency: number;
  match: "email" | undefined;
  onConflict: OnConflict;
  maxAttempts: number | undefined;
  /** Prints a line of JSON for each row. */
  results: boolean;
};

/** The members of --result of the other commands, after the place of the row. */
function rowResult(row: Row, { write, ...outcome }: RowOutcome): JsonObject {
  const failed = outcome.kind === "failed" || outcome.kind === "unknown" || outcome.kind === "stop";
  const failure = failed ? outcome.failure : undefined;
  const members = new Map<string, Json>([
    ["row", new JsonNumber(String(row.number))],
    ["line", new JsonNumber(String(row.line))],
    ["id", row.id ?? null],
    ["result", outcome.kind === "updated" ? "as-wanted" : "not-written"],
    ...reason(failure),
    ...(write === undefined
      ? []
      : write.kind === "update"
        ? resultOfWrite(write.id, "updated", write.outcome, { failure })
        : resultOfCreation(write.creation, failure)),
  ]);
  // By what an earlier run or someone else wrote.
  return outcome.kind === "unchanged" ? members.set("result", "unchanged") : members;
}

const INTERRUPTED = failure("interrupted", "interrupted");

export type Tally = Record<FinalState | "unknown", number> & {
  conflicts: number;
  /** Of those updated: a reply was lost, and they were found as wanted, perhaps by someone else. */
  unclear: number;
};

/** Of failing rows: more are only counted, so that a million of them fill no screen. */
const SHOWN_MAX = 5;

/** @returns what came of the rows, those of earlier runs included, and why it stopped before the end. */
export async function runImport(
  invocation: Invocation,
  plan: ImportPlan,
): Promise<{ tally: Tally; stop: Failure | undefined }> {
  const { settings, messages, api, interrupted } = invocation;
  const { journal } = plan;
  const { importId } = journal.record;
  /** Rows after it have no record of an earlier run. */
  const knownRows = journal.lastRow();
  const recorder = await invocation.recorder();
  const { sent: _, ...final } = journal.counts();
  const tally = { ...final, unknown: 0, conflicts: 0, unclear: journal.unclear() };
  const before = tally.created + tally.updated + tally.unchanged + tally.failed;
  const undecided = new Set<string>();
  let stop: Failure | undefined;
  const progress = showProgress(invocation, "rows", () => ({
    done: tally.created + tally.updated + tally.unchanged + tally.failed,
    before,
    total: plan.total,
    conflicts: tally.conflicts,
    failed: tally.failed,
  }));

  async function send(row: Row): Promise<RowOutcome> {
    const context: RowContext = {
      transport: api,
      deadline: invocation.deadline(),
      casing: settings.casing,
      onConflict: plan.onConflict,
      maxAttempts: plan.maxAttempts,
      record: recorder.record,
    };
    const sentBefore = row.number <= knownRows && journal.row(row.number)?.state === "sent";
    const outcome = await persistently(context, async () => {
      const { id } = row;
      if (id !== undefined) return await updateRow(context, id, row, sentBefore);
      if (plan.match !== undefined) {
        const found = await matchByEmail(context, row);
        if (found.kind === "failed") return unmatched(found);
        if (found.kind === "one") {
          // The address must still be that of the row when the write is decided.
          const expect = [{ field: "email", value: emailOf(row) ?? "" }];
          return await updateRow({ ...context, expect }, found.id, row, sentBefore);
        }
      }
      await journal.sent(row);
      return await createRow(context, row, `${importId}-${row.number}`, sentBefore);
    });
    return sentBefore && outcome.kind === "failed" ? afterUnclear(outcome) : outcome;
  }

  async function work(row: Row): Promise<void> {
    // A row that comes after one of unknown outcome must not be overtaken by it on --resume.
    const key = keyOf(row, plan.match);
    if (key !== undefined && undecided.has(key)) return;
    const outcome = await send(row);
    tally.conflicts += outcome.conflicts;
    if (plan.results) await invocation.out.write(`${formatJson(rowResult(row, outcome))}\n`);
    switch (outcome.kind) {
      case "stop":
        stop ??= interrupted.aborted ? INTERRUPTED : outcome.failure;
        return;
      case "unknown":
        tally.unknown += 1;
        await journal.sent(row);
        if (key !== undefined) undecided.add(key);
        if (tally.unknown <= SHOWN_MAX && !interrupted.aborted)
          progress.say(`${place(row)}: ${outcome.failure.message}`);
        return;
      case "failed": {
        const reason = maskSecrets(reasonOf(outcome.failure), settings.secrets);
        journal.failed(row, reason);
        tally.failed += 1;
        if (tally.failed - final.failed <= SHOWN_MAX) progress.say(`${place(row)}: ${reason}`);
        return;
      }
    }
    const remark = remarkOn(outcome);
    if (remark === "unclear") tally.unclear += 1;
    journal.finished(row, outcome.kind, remark);
    tally[outcome.kind] += 1;
  }

  try {
    await forEachConcurrently(unfinished(plan, knownRows), {
      concurrency: plan.concurrency,
      keyOf: (row) => keyOf(row, plan.match),
      stopped: () => stop !== undefined || interrupted.aborted,
      work,
    });
  } finally {
    progress.stop();
    journal.flush();
  }
  if (interrupted.aborted) stop = INTERRUPTED;
  if (tally.failed - final.failed > SHOWN_MAX)
    messages.note(`… and ${tally.failed - final.failed - SHOWN_MAX} more`);
  return { tally, stop };
}

/** What was refused is this sending: an earlier run sent the row too, and had no clear reply. */
function afterUnclear(outcome: Extract<RowOutcome, { kind: "failed" }>): RowOutcome {
  if (outcome.failure.code === "unknown-outcome") return outcome;
  const message = `${outcome.failure.message}; an earlier sending of this row had no clear reply, and may have been applied`;
  return { ...outcome, failure: { ...outcome.failure, message } };
}

/** What the journal keeps of a row besides that it is done. */
function remarkOn(outcome: RowOutcome): Remark | undefined {
  if (outcome.kind === "created") return outcome.earlier;
  return outcome.kind === "updated" && outcome.unclear ? "unclear" : undefined;
}

/** Waiting does not help with these. */
const HOPELESS = ["tls", "timeout", "unreadable"];

/**
 * A server that restarts must not end an import: what certainly had no effect is tried until the row's time
 * is up.
 */
async function persistently(context: RowContext, attempt: () => Promise<RowOutcome>): Promise<RowOutcome> {
  for (let tries = 1; ; tries += 1) {
    const outcome = await attempt();
    if (outcome.kind !== "stop") return outcome;
    const { exit, code, waitMs: askedMs = 0 } = outcome.failure;
    const waitMs = askedMs + backOffMs(tries);
    const again =
      exit === "unreachable" && !HOPELESS.includes(code) && waitMs < context.deadline.remainingMs();
    if (!again) return outcome;
    await context.deadline.wait(waitMs);
  }
}

/**
 * Rows with the same key are sent one after another. Ids are matched without regard to case; with --match,
 * two rows of one address would otherwise both find nobody, and both create.
 */
export function keyOf(row: Row, match: ImportPlan["match"]): string | undefined {
  if (row.id !== undefined) return row.id.toLowerCase();
  return match === undefined ? undefined : `email ${emailOf(row)?.toLowerCase()}`;
}

function unmatched({ failure, everyRow }: Extract<Match, { kind: "failed" }>): RowOutcome {
  return { kind: everyRow || stopsAll(failure) ? "stop" : "failed", failure, conflicts: 0 };
}

/** No further than what was checked, should the file have grown since. */
async function* unfinished({ rows, total, journal }: ImportPlan, knownRows: number): AsyncGenerator<Row> {
  for await (const row of rows) {
    if (row.number > total) return;
    const state = row.number <= knownRows ? journal.row(row.number)?.state : undefined;
    if (state === undefined || state === "sent") yield row;
  }
}

export function place({ number, line }: Row): string {
  return `row ${number} (line ${line})`;
}

/** One line, for a cell. */
function reasonOf({ message, details = [] }: Failure): string {
  return [message, ...details.map((line) => line.trim())].join("; ").replaceAll(/\s+/g, " ");
}
