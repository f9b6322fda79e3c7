/** The one line on stderr at the end of a write: what came of it, in how many attempts, from which tag to which. */
import { counted } from "./conflict-failure.ts";
import type { WriteOutcome } from "./conflict-loop.ts";
import type { Failure } from "./failure.ts";
import type { Invocation } from "./invocation.ts";

/** @param done "updated" or "deleted". */
export function summaryLine(id: string, done: string, outcome: WriteOutcome): string {
  const parts = [
    `${counted(outcome.attempts, "attempt")}, ${counted(outcome.conflicts, "conflict")}`,
    outcome.kind === "written" && done === "deleted"
      ? `tag ${outcome.before ?? "unknown"}`
      : `tag ${outcome.before ?? "unknown"} -> ${outcome.after ?? "unknown"}`,
  ];
  if (outcome.requestId !== undefined) parts.push(`request id ${outcome.requestId}`);
  switch (outcome.kind) {
    case "unchanged":
      return `customer ${id} unchanged: it is already as wanted, nothing was sent; tag ${outcome.before ?? "unknown"}`;
    case "as-wanted":
      return `customer ${id} not ${done} by this command: after a 412 it is as wanted already, by someone else or by a copy of this request; ${parts.join("; ")}`;
    case "written": {
      const how = outcome.confirmedByReading ? " (the reply was lost; confirmed by reading)" : "";
      return `customer ${id} ${done}${how}: ${parts.join("; ")}`;
    }
    default:
      return `customer ${id} not ${done}: ${parts.join("; ")}`;
  }
}

/** The failure with the summary under it, where anything was sent and --quiet does not forbid. */
export function withSummary(
  { settings }: Pick<Invocation, "settings">,
  id: string,
  done: string,
  outcome: WriteOutcome & { failure: Failure },
): Failure {
  const { failure, attempts } = outcome;
  if (attempts === 0 || settings.quiet) return failure;
  return { ...failure, details: [...(failure.details ?? []), summaryLine(id, done, outcome)] };
}
