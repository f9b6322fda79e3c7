import { createReadStream, statSync } from "node:fs";
import { Option } from "@commander-js/extra-typings";
import { systemCode } from "../files/system-code.ts";
import type { Journal } from "../import/journal.ts";
import type { Rehearsal } from "../import/rehearsal.ts";
import type { Format, Source } from "../import/rows.ts";
import type { ImportPlan } from "../import/run.ts";
import type { Ending, Invocation } from "../invocation.ts";
import { amount } from "../outcome/amount.ts";
import { type Failure, failure, isFailure } from "../outcome/failure.ts";
import type { RegisterCommand } from "./common/command.ts";
import { confirmWrite } from "./common/confirm-write.ts";
import { type LoopOptions, MAX_ATTEMPTS, ON_CONFLICT, positiveInteger, YES } from "./common/options.ts";

type Options = LoopOptions & {
  format?: Format;
  concurrency: number;
  resume?: boolean;
  restart?: boolean;
  again?: boolean;
  match?: "email";
  journal?: string;
  failed?: string;
  dryRun?: boolean;
  yes?: boolean;
  result?: boolean;
};

/** More than that is a load test, not an import. */
const CONCURRENCY_MAX = 256;

export const registerImport: RegisterCommand = (program, run) => {
  program
    .command("import")
    .description("create and update customers from CSV or NDJSON; --timeout is for each row")
    .argument("<file>", "file to read; - is stdin")
    .addOption(
      new Option("--format <format>", "of the input (default: by its name or first character)").choices([
        "csv",
        "ndjson",
      ]),
    )
    .option("--concurrency <n>", "rows in work at a time", concurrency, 16)
    .option("--resume", "resume an unfinished import")
    .addOption(new Option("--restart", "forget an unfinished import, and start over").conflicts("resume"))
    .option("--again", "create the customers of a finished import a second time")
    .addOption(
      new Option(
        "--match <field>",
        "a row without id updates the one customer that has its value; creates where none has it, fails where several have",
      ).choices(["email"]),
    )
    .option("--journal <path>", "what became of each row (default: the input's path and .journal)")
    .option(
      "--failed <path>",
      "where rows that failed go, with reasons (default: beside the input; of stdin, here)",
    )
    .option("--dry-run", "read, show counts and some of the changes, write nothing")
    .addOption(YES)
    .addOption(ON_CONFLICT)
    .addOption(MAX_ATTEMPTS)
    .addOption(new Option("--result", "print what came of each row, a line of JSON each").conflicts("dryRun"))
    .action(
      run(async (invocation, file, options) => {
        if (file === "-" && invocation.flags.tokenStdin)
          return failure(
            "usage",
            "stdin can't hold both the token and the rows",
            "Give the token as --token-file.",
          );
        // A pipe is to an import what stdin is: read once, and without a place for a journal beside it.
        const piped = file === "-" || isPipe(file);
        if (piped && options.resume && options.journal === undefined && !options.dryRun) {
          return failure(
            "usage",
            "there is nothing to resume: rows from a pipe leave no journal without --journal PATH; nothing was sent",
            "Without --resume, all of them are sent; --match email finds the customers that were created before.",
          );
        }
        if (!piped) return await importFile(invocation, { source: file, name: file, shown: file, options });
        const { spool } = await import("../import/input.ts");
        const stream = file === "-" ? invocation.host.stdin : createReadStream(file);
        const spooled = await spool(stream, file === "-" ? "stdin" : file, invocation.interrupted);
        if (isFailure(spooled)) return spooled;
        return await importFile(invocation, { source: spooled.fd, name: "-", shown: file, options });
      }),
    );
};

/** What can be read once only: a named pipe, or `<(…)` of a shell. */
function isPipe(file: string): boolean {
  try {
    const stats = statSync(file);
    return stats.isFIFO() || stats.isCharacterDevice() || stats.isSocket();
  } catch {
    return false; // the error is reported when it is read
  }
}

function concurrency(text: string): number {
  return Math.min(CONCURRENCY_MAX, positiveInteger(text));
}

/** `name`: as the operator gave it, `-` for every pipe; `shown`: in messages; `source`: where it is read. */
type Input = { source: Source; name: string; shown: string; options: Options };

async function importFile(invocation: Invocation, { source, name, shown, options }: Input): Promise<Ending> {
  const { earlierJournal } = await import("../import/begin.ts");
  const { failedRowsPath, survey } = await import("../import/input.ts");
  const { checkFailedRowsFile } = await import("../import/failed-rows.ts");
  const { detectFormat, readRows } = await import("../import/rows.ts");
  const { url } = invocation.api;
  const journalPath = options.journal ?? (name === "-" ? ":memory:" : `${name}.journal`);
  const resume = journalPath === ":memory:" ? undefined : resumeCommand(invocation, name, options);
  const beginning = {
    resume: options.resume ?? false,
    restart: options.restart ?? false,
    // With --match, a row whose customer exists creates nothing.
    again: options.again ?? options.match !== undefined,
    url,
    journalPath,
    journalIsNamed: options.journal !== undefined,
    input: name,
  };

  // A rehearsal looks at an earlier import as the real one does, and changes nothing of it.
  const earlier = earlierJournal(options.dryRun ? { ...beginning, resume: false, restart: true } : beginning);
  if (isFailure(earlier)) return earlier;
  let journal: Journal | undefined = earlier.kind === "none" ? undefined : earlier.journal;
  try {
    const format = options.format ?? (await detectFormat(source, name));
    const surveyed = await survey({ source, name: shown === "-" ? "stdin" : shown }, format, earlier);
    if (isFailure(surveyed)) return surveyed;
    const rows = () => readRows(source, format);
    if (options.dryRun)
      return await dryRun(invocation, {
        rows: rows(),
        header: surveyed.header,
        total: surveyed.rows,
        concurrency: options.concurrency,
        match: options.match,
      });
    const failedPath = options.failed ?? failedRowsPath(name === "-" ? "stdin" : name, format);
    const unwritable = checkFailedRowsFile(failedPath);
    if (unwritable !== undefined) return unwritable;
    const refused = await confirmWrite(
      invocation,
      `import ${amount(surveyed.rows, "row")}`,
      options.yes ?? false,
    );
    if (refused !== undefined) return refused;

    if (earlier.kind === "replace" || earlier.kind === "done") earlier.journal.restart();
    const { openJournal } = await import("../import/journal.ts");
    const opened = journal ?? openJournal(journalPath, beginning);
    if (isFailure(opened)) return opened;
    journal = opened;
    journal.identify(surveyed);
    const plan: ImportPlan = {
      rows: rows(),
      total: surveyed.rows,
      journal,
      concurrency: options.concurrency,
      match: options.match,
      onConflict: options.onConflict ?? "reapply",
      results: options.result ?? false,
      maxAttempts: options.maxAttempts,
    };
    const { runImport } = await import("../import/run.ts");
    const { importEnding } = await import("../import/ending.ts");
    const alreadyComplete = journal.record.complete;
    const run = await runImport(invocation, plan);
    if (run.kind === "broken") return await brokenOff(run, resume);
    return await importEnding(invocation, {
      ...run,
      total: surveyed.rows,
      name,
      resume,
      journal,
      alreadyComplete,
      failedPath,
      failedRows: { format, header: surveyed.header, rows },
    });
  } catch (error) {
    return await brokenOff({ error, unkept: 0 }, resume);
  } finally {
    journal?.close();
  }
}

/**
 * The input or the journal failed under the running import. @param unkept rows that were sent, and of which the
 * journal does not hold what became.
 */
async function brokenOff(
  { error, unkept }: { error: unknown; unkept: number },
  resume: string | undefined,
): Promise<Failure> {
  const { InputError } = await import("../import/rows.ts");
  const { NOT_RESUMABLE } = await import("../import/ending.ts");
  const why = error instanceof InputError ? error.message : systemCode(error);
  const open = `what became of ${amount(unkept, "row")} that ${unkept === 1 ? "was" : "were"} sent is not kept`;
  const again = unkept === 0 ? "" : "\nIt sends those rows again, creations under their Idempotency-Key.";
  return failure(
    unkept === 0 ? "failure" : "unknown-outcome",
    `the import broke off: ${why}${unkept === 0 ? "" : `; ${open}`}`,
    resume === undefined ? NOT_RESUMABLE : `When that is corrected: ${resume}${again}`,
  );
}

/** Goes to the same server as this run, wherever the environment points by then. */
function resumeCommand({ flags }: Invocation, name: string, { journal, format, match }: Options): string {
  const { url, profile, tokenFile } = flags;
  const given = { url, profile, "token-file": tokenFile, journal, format, match };
  const options = Object.entries(given).flatMap(([option, value]) =>
    value === undefined ? [] : [`--${option} ${quoted(value)}`],
  );
  return ["customers import", quoted(name), ...options, "--resume"].join(" ");
}

/** For a POSIX shell. */
function quoted(text: string): string {
  return /^[\w./:@-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

async function dryRun(invocation: Invocation, plan: Rehearsal): Promise<Ending> {
  const { forecastImport, forPrograms } = await import("../import/rehearsal.ts");
  const { forecast, stop } = await forecastImport(invocation, plan);
  // The counts of a part would pass for a forecast of all.
  if (stop !== undefined) return stop;
  const { created, updated, unchanged, failed } = forecast;
  const counts = `${created} would be created, ${updated} updated, ${unchanged} left unchanged, ${failed} would fail`;
  // Whether the server accepts the values only a write can tell.
  const caveat = created + updated > 0 ? "; the server checks values only when they are written" : "";
  invocation.messages.warn(
    `dry run of ${amount(plan.total, "row")}: ${counts}${caveat}; nothing was sent that writes`,
  );
  if (forPrograms(invocation)) {
    const { out } = invocation;
    await out.write(`${JSON.stringify({ dryRun: true, rows: plan.total, ...forecast })}\n`);
  }
  return failed === 0
    ? undefined
    : failure("rows-failed", `${failed} of ${amount(plan.total, "row")} would fail`);
}
