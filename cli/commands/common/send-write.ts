import type { Change } from "../../client/loop/field-conflicts.ts";
import { writeUntilDecided } from "../../client/loop/loop.ts";
import type { WriteJob } from "../../client/loop/write-job.ts";
import type { WriteOutcome } from "../../client/loop/write-outcome.ts";
import type { Invocation } from "../../invocation.ts";
import type { Failure } from "../../outcome/failure.ts";
import { type BadOutcome, badOutcome, writeEnding } from "../../outcome/write-ending.ts";
import { summaryLine, withSummary } from "../../outcome/write-summary.ts";

export type Sent = {
  outcome: WriteOutcome;
  /** Undefined where the customer is as wanted. */
  stop: { bad: BadOutcome; ending: Failure; failureWithSummary: Failure } | undefined;
};

/**
 * Sends a conditional write until its outcome is decided, keeps what it replaced for undo, and prints the summary of a
 * good end.
 * @param pin see About.
 */
export async function sendWrite(
  invocation: Invocation,
  job: WriteJob,
  done: "updated" | "deleted" | "restored",
  { change, pin }: { change?: Change; pin?: string } = {},
): Promise<Sent> {
  const { api, messages, settings } = invocation;
  const { id, onConflict } = job;
  const recorder = done === "restored" ? undefined : await invocation.recorder();
  const outcome = await writeUntilDecided(invocation.ports(), {
    ...job,
    asksForChanges: true,
    requestId: crypto.randomUUID(),
  });
  recorder?.record(id, change, outcome);
  const bad = badOutcome(outcome);
  if (bad === undefined) {
    messages.note(summaryLine(id, done, outcome));
    return { outcome, stop: undefined };
  }
  const about = { id, done, url: api.url, onConflict, ...(pin === undefined ? {} : { pin }) };
  const ending = writeEnding(about, bad);
  const failureWithSummary = withSummary(ending, id, done, outcome, settings.quiet);
  return { outcome, stop: { bad, ending, failureWithSummary } };
}
