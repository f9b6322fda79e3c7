/** How an import ends: its summary, the file of failed rows, and what to do about what is left. */
import { existsSync } from "node:fs";
import { systemCode } from "../files/system-code.ts";
import type { Ending, Invocation } from "../invocation.ts";
import { amount, count } from "../outcome/amount.ts";
import { type Failure, failure, isFailure } from "../outcome/failure.ts";
import { writeFailedRows } from "./failed-rows.ts";
import { failedRows } from "./input.ts";
import type { Journal } from "./journal.ts";
import type { Format, Header, Row } from "./rows.ts";
import type { Tally } from "./run.ts";

export type Ended = {
  tally: Tally;
  stop: Failure | undefined;
  total: number;
  /** As the operator named the input. */
  name: string;
  /** The command that resumes it; undefined where no journal is kept, as for rows from a pipe. */
  resume: string | undefined;
  journal: Journal;
  /** It was complete before this run: its failed rows were written then. */
  alreadyComplete: boolean;
  failedPath: string;
  failedRows: { format: Format; header: Header; rows: () => AsyncIterable<Row> };
};

export async function importEnding(invocation: Invocation, ended: Ended): Promise<Ending> {
  const { messages } = invocation;
  const { tally, total, journal } = ended;
  const doubtful = journal.doubtful();
  messages.note(summary(ended, doubtful.length));
  const left = total - (tally.created + tally.updated + tally.unchanged + tally.failed);
  await printCounts(invocation, tally, { total, left, perhapsTwice: doubtful.length });
  const ending = await endingOfRows(ended, left);
  if (doubtful.length === 0) return ending;
  const doubt = doubtOf(doubtful);
  if (ending === undefined) return doubt;
  messages.warn(`${doubt.message}\n${doubt.hint}`);
  return ending.exit === "rows-failed" ? { ...ending, exit: doubt.exit } : ending;
}

async function endingOfRows(ended: Ended, left: number): Promise<Ending> {
  const { tally, stop, total, journal } = ended;
  if (left > 0) return unfinished(ended, left);
  if (stop !== undefined && stop.exit !== "interrupted") return stop;
  if (tally.failed === 0) {
    journal.complete();
    return undefined;
  }
  const message = `${count(tally.failed)} of ${amount(total, "row")} failed`;
  if (ended.alreadyComplete)
    return failure("rows-failed", message, "Their file was written when the import ended.");
  const written = await keepFailedRows(ended);
  if (isFailure(written)) return { ...written, message: `${message}, and ${written.message}` };
  journal.complete();
  return failure(
    "rows-failed",
    message,
    `They are in ${written.path} with reasons: correct them and import that file.`,
  );
}

/** For a script that asks for it: what the summary says, as one line of JSON on stdout. */
async function printCounts(
  { out, settings }: Invocation,
  { created, updated, unclear, unchanged, failed, conflicts }: Tally,
  { total, left, perhapsTwice }: { total: number; left: number; perhapsTwice: number },
): Promise<void> {
  if (settings.output !== "json" && settings.output !== "ndjson") return;
  const counts = { rows: total, created, perhapsTwice, updated, unclear, unchanged, failed, left, conflicts };
  await out.write(`${JSON.stringify(counts)}\n`);
}

function summary({ tally, name, total }: Ended, doubtful: number): string {
  const { created, updated, unclear, unchanged, failed, conflicts } = tally;
  const found =
    unclear === 0 ? "" : ` (${count(unclear)} found so after a lost reply, perhaps by someone else)`;
  const twice = doubtful === 0 ? "" : ` (${count(doubtful)} perhaps twice)`;
  const parts = [
    `${count(created)} created${twice}`,
    `${count(updated)} updated${found}`,
    `${count(unchanged)} unchanged`,
    `${count(failed)} failed`,
  ];
  const input = name === "-" ? "stdin" : name;
  return `import of ${input}, ${amount(total, "row")}: ${parts.join(", ")}; ${amount(conflicts, "conflict")}`;
}

const DOUBTFUL_SHOWN_MAX = 1000;

/** The replies do not show whether these exist twice; silence would claim that they do not. */
function doubtOf(doubtful: readonly number[]): Failure {
  const places = `row ${doubtful.slice(0, DOUBTFUL_SHOWN_MAX).join(", ")}`;
  return failure(
    "unknown-outcome",
    `${amount(doubtful.length, "row")} had been sent before without a reply, went out again, and the server does not say that it knew their Idempotency-Key: ${places}${doubtful.length > DOUBTFUL_SHOWN_MAX ? ", …" : ""}`,
    "Where this deployment ignores that header, these customers may exist twice; look with: customers list --email ADDRESS",
  );
}

/** What to do about rows of a pipe that were not done: the next import draws other keys. */
export const NOT_RESUMABLE =
  "Rows from a pipe leave no journal, so this import cannot be resumed. Send the rows again with --match email, which finds the customers that were created. With --journal PATH, the next import can be resumed.";

/** Rows are left: why, and how to go on. */
function unfinished({ tally, stop, name, resume }: Ended, left: number): Failure {
  const open = tally.unknown === 0 ? "" : `, ${count(tally.unknown)} of them sent without a clear reply`;
  const rest = `${amount(left, "row")} not done yet${stop === undefined ? "" : open}`;
  const hint = resume === undefined ? NOT_RESUMABLE : `Resume with: ${resume}`;
  if (stop !== undefined)
    return {
      ...stop,
      // What is unknown weighs more than why the rest was not sent.
      exit: tally.unknown > 0 && stop.exit !== "interrupted" ? "unknown-outcome" : stop.exit,
      message: `${stop.message}; ${rest}`,
      hint: stop.hint === undefined ? hint : `${stop.hint}\n${hint}`,
    };
  if (tally.unknown === 0)
    return failure("failure", `${name} became shorter while it was imported: ${rest}`, hint);
  return failure(
    "unknown-outcome", // also where others failed: their file is written when the import ends
    `unknown outcome of ${amount(tally.unknown, "row")}: no clear reply came; ${rest}`,
    resume === undefined
      ? hint
      : `${hint}. Updates are conditional; a creation is sent again under its Idempotency-Key, and the customers that a server without that header may have twice are named.`,
  );
}

async function keepFailedRows(ended: Ended): Promise<{ path: string } | Failure> {
  const { failedPath: path, journal } = ended;
  const { format, header, rows } = ended.failedRows;
  const hint =
    ended.resume === undefined
      ? "Rows from a pipe leave no journal, so only the reasons that were printed are left."
      : "Name another file with --failed PATH, and run it with --resume.";
  if (existsSync(path)) return failure("failure", `${path} exists already`, hint);
  try {
    await writeFailedRows(path, format, header, failedRows(rows(), journal));
    return { path };
  } catch (error) {
    return failure("failure", `${path} can't be written (${systemCode(error)})`, hint);
  }
}
