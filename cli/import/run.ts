/** Sends the rows of an import, with a journal of what came of each. */

import { formatJson, type Json, JsonNumber, type JsonObject } from "../client/json.ts";
import type { OnConflict } from "../client/loop/write-job.ts";
import { backOffMs } from "../client/wire/retry-timing.ts";
import type { Invocation } from "../invocation.ts";
import { type Failure, failure } from "../outcome/failure.ts";
import { reason, resultOfCreation, resultOfWrite } from "../outcome/write-result.ts";
import { maskSecrets } from "../output/messages.ts";
import { showProgress } from "../output/progress.ts";
import { escapedInJson } from "../output/visible-controls.ts";
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

/**
 * @returns what came of the rows, those of earlier runs included, and why it stopped before the end. `broken`: the
 * input or the journal failed meanwhile; `unkept` rows were sent, and the journal does not hold what became of them.
 */
export async function runImport(
  invocation: Invocation,
  plan: ImportPlan,
): Promise<
  | { kind: "run"; tally: Tally; stop: Failure | undefined }
  | { kind: "broken"; error: unknown; unkept: number }
> {
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
  /** Rows of this run that were sent, and whose outcome the journal does not hold yet. */
  const inFlight = new Set<number>();
  let stop: Failure | undefined;
  const progress = showProgress(invocation, "rows", () => ({
    done: tally.created + tally.updated + tally.unchanged + tally.failed,
    before,
    total: plan.total,
    conflicts: tally.conflicts,
    failed: tally.failed,
  }));

  /** @param again an earlier run sent it, and left its outcome open. */
  async function send(row: Row, again: boolean): Promise<RowOutcome> {
    const context: RowContext = {
      transport: api,
      deadline: invocation.deadline(),
      casing: settings.casing,
      onConflict: plan.onConflict,
      maxAttempts: plan.maxAttempts,
      record: recorder.record,
    };
    const outcome = await persistently(context, async () => {
      const { id } = row;
      if (id !== undefined) return await updateRow(context, id, row, again);
      if (plan.match !== undefined) {
        const found = await matchByEmail(context, row);
        if (found.kind === "failed") return unmatched(found);
        if (found.kind === "one") {
          // The address must still be that of the row when the write is decided. A server finds it in any case.
          const expect = [{ field: "email", value: emailOf(row) ?? "", anyCase: true }];
          return await updateRow({ ...context, expect }, found.id, row, again);
        }
      }
      await journal.sent(row);
      inFlight.add(row.number);
      return await createRow(context, row, `${importId}-${row.number}`, again);
    });
    const wrote = outcome.write !== undefined && outcome.kind !== "stop" && outcome.kind !== "unchanged";
    if (wrote) inFlight.add(row.number);
    const isBad = outcome.kind === "failed" || outcome.kind === "unknown";
    return again && isBad ? { ...outcome, failure: afterUnclear(outcome.failure) } : outcome;
  }

  function kept({ number }: Row, keeping: Promise<void>): void {
    keeping.then(
      () => void inFlight.delete(number),
      () => {}, // the next change, or the flush, throws it
    );
  }

  async function work(row: Row): Promise<void> {
    // A row that comes after one of unknown outcome must not be overtaken by it on --resume.
    const key = keyOf(row, plan.match);
    if (key !== undefined && undecided.has(key)) return;
    const again = row.number <= knownRows && journal.row(row.number)?.state === "sent";
    const outcome = await send(row, again);
    tally.conflicts += outcome.conflicts;
    if (plan.results) await invocation.out.write(`${escapedInJson(formatJson(rowResult(row, outcome)))}\n`);
    switch (outcome.kind) {
      case "stop":
        stop ??= interrupted.aborted ? INTERRUPTED : outcome.failure;
        inFlight.delete(row.number);
        // No try of this run was applied, also where the last stopped before its write: sent by --resume, the row
        // can't exist twice.
        if (!again) await journal.notSent(row);
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
        kept(row, journal.failed(row, reason));
        tally.failed += 1;
        if (tally.failed - final.failed <= SHOWN_MAX) progress.say(`${place(row)}: ${reason}`);
        return;
      }
    }
    const remark = remarkOn(outcome);
    if (remark === "unclear") tally.unclear += 1;
    kept(row, journal.finished(row, outcome.kind, remark));
    tally[outcome.kind] += 1;
  }

  let broken: { error: unknown } | undefined;
  try {
    await forEachConcurrently(unfinished(plan, knownRows), {
      concurrency: plan.concurrency,
      keyOf: (row) => keyOf(row, plan.match),
      stopped: () => stop !== undefined || interrupted.aborted,
      work,
    });
    journal.flush();
  } catch (error) {
    broken = { error };
  } finally {
    progress.stop();
  }
  if (broken !== undefined) {
    await keptAsFarAsPossible(journal);
    return { kind: "broken", error: broken.error, unkept: inFlight.size };
  }
  if (interrupted.aborted) stop = INTERRUPTED;
  if (tally.failed - final.failed > SHOWN_MAX)
    messages.note(`… and ${tally.failed - final.failed - SHOWN_MAX} more`);
  return { kind: "run", tally, stop };
}

/** The rows that are kept have been counted when this is resolved. */
async function keptAsFarAsPossible(journal: Journal): Promise<void> {
  try {
    journal.flush();
  } catch {
    // It is what broke the import off, or comes of the same full disk.
  }
  await new Promise(setImmediate);
}

/** What was refused is this sending: an earlier run sent the row too, and had no clear reply. */
function afterUnclear(failure: Failure): Failure {
  if (failure.code === "unknown-outcome") return failure;
  const message = `${failure.message}; an earlier sending of this row had no clear reply, and may have been applied`;
  return { ...failure, message };
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
