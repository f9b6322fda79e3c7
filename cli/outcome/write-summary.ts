/**
 * The one line on stderr at the end of a write: what came of it, in how many attempts, from which tag to
 * which.
 */
import type { WriteOutcome } from "../client/loop/write-outcome.ts";
import { amount } from "./amount.ts";
import type { Failure } from "./failure.ts";
import { changeLine } from "./value-text.ts";
import { whoChangedTexts } from "./who-changed.ts";

/** @param done "updated" or "deleted". */
export function summaryLine(id: string, done: string, outcome: WriteOutcome): string {
  const { kind, before = "unknown", after = "unknown", requestId } = outcome;
  if (kind === "unchanged") {
    return `customer ${id} unchanged: it is already as wanted, nothing was sent; tag ${before}`;
  }
  const known = kind === "written" || kind === "as-wanted";
  const parts = [
    `${amount(outcome.attempts, "attempt")}, ${amount(outcome.conflicts, "conflict")}`,
    known && done !== "deleted" ? `tag ${before} -> ${after}` : `tag ${before}`,
  ];
  if (outcome.unknowns > 0) parts.splice(1, 0, `${outcome.unknowns} without a clear reply`);
  if (known && requestId !== undefined) parts.push(`request id ${requestId}`);
  if (known) parts.push(...whoChangedTexts(outcome, 3));
  const facts = parts.join("; ");
  if (kind === "written") return `customer ${id} ${done}: ${facts}${overwritten(outcome)}`;
  if (kind === "as-wanted")
    return outcome.unknowns > 0
      ? `customer ${id} is as wanted; a write had no clear reply, so whose write made it so is not known; ${facts}`
      : `customer ${id} unchanged by this command: its write was refused, and the customer is as wanted already, by someone else or by a copy of the request; ${facts}`;
  return kind === "unknown-outcome"
    ? `customer ${id}: whether it was ${done} is unknown; ${facts}`
    : `customer ${id} not ${done}: ${facts}`;
}

/** What --on-conflict reapply wrote over, or deleted unseen, of someone else's. */
function overwritten(outcome: Extract<WriteOutcome, { kind: "written" }>): string {
  const fields = outcome.overwritten.map(({ field, theirs, mine }) =>
    mine === undefined ? field : changeLine(field, theirs, mine),
  );
  if (fields.length === 0) return "";
  const deleted = outcome.overwritten.some(({ mine }) => mine === undefined);
  return `; ${deleted ? "someone else had changed" : "overwrote a change by someone else:"} ${fields.join(", ")}`;
}

/** The failure with the summary under it, where anything was sent and --quiet does not forbid. */
export function withSummary(
  failure: Failure,
  id: string,
  done: string,
  outcome: WriteOutcome,
  quiet: boolean,
): Failure {
  if (outcome.attempts === 0 || quiet) return failure;
  return { ...failure, details: [...(failure.details ?? []), summaryLine(id, done, outcome)] };
}
