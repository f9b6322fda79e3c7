import { createReadStream, statSync } from "node:fs";
import { Option } from "commander";
import type { Journal } from "../import/journal.ts";
import type { Format } from "../import/rows.ts";
import type { ImportPlan } from "../import/run.ts";
import { type Failure, failure } from "../outcome/failure.ts";
import { amount } from "../output/progress.ts";
import type { RegisterCommand } from "../program.ts";
import { confirmWrite } from "./confirm-write.ts";
import type { Ending, Invocation } from "./invocation.ts";
import { addLoopOptions, atLeastOne, type LoopOptions } from "./options.ts";

type Options = LoopOptions & {
  format?: Format;
  concurrency: number;
  resume?: boolean;
  restart?: boolean;
  journal?: string;
  failed?: string;
  dryRun?: boolean;
  yes?: boolean;
  tokenStdin?: boolean;
};

/** More than that is a load test, not an import. */
const CONCURRENCY_MAX = 256;

export const registerImport: RegisterCommand = (program, run) => {
  const command = program
    .command("import <file>")
    .description("create and update customers from CSV or NDJSON; - is stdin; --timeout is for each row")
    .addOption(
      new Option("--format <format>", "of the input (default: by its name or first character)").choices([
        "csv",
        "ndjson",
      ]),
    )
    .option("--concurrency <n>", "rows in work at a time", concurrency, 16)
    .option("--resume", "go on with an import that did not come to its end")
    .option("--restart", "forget an import that did not come to its end, and begin anew")
    .option("--journal <path>", "what became of each row (default: the input's path and .journal)")
    .option(
      "--failed <path>",
      "where rows that failed go, with reasons (default: beside the input; of stdin, here)",
    )
    .option("--dry-run", "read, show counts and some of the changes, write nothing")
    .option("-y, --yes", "do not ask");
  addLoopOptions(command).action(
    run<Options>(async (invocation, [file = "-"], options) => {
      if (options.resume && options.restart)
        return failure("usage", "--resume and --restart can't be given together");
      if (file === "-" && options.tokenStdin)
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
          "Without --resume, all of them are sent; creations that were made before are then made again.",
        );
      }
      if (!piped) return await importFile(invocation, { path: file, name: file, options });
      const { spool } = await import("../import/input.ts");
      const spooled = await spool(
        file === "-" ? invocation.host.stdin : createReadStream(file),
        file === "-" ? "stdin" : file,
        invocation,
      );
      if ("exit" in spooled) return spooled;
      try {
        return await importFile(invocation, { path: spooled.path, name: "-", options });
      } finally {
        spooled.remove();
      }
    }),
  );
};

/** What can be read once only: a named pipe, or `<(…)` of a shell. */
function isPipe(file: string): boolean {
  try {
    const stats = statSync(file);
    return stats.isFIFO() || stats.isCharacterDevice() || stats.isSocket();
  } catch {
    return false; // why it can't be read is told when it is read
  }
}

function concurrency(text: string): number {
  return Math.min(CONCURRENCY_MAX, atLeastOne(text));
}

/** `name`: as the operator gave it; `path`: where it is read. */
type Input = { path: string; name: string; options: Options };

async function importFile(invocation: Invocation, { path, name, options }: Input): Promise<Ending> {
  const { earlierJournal, useJournal } = await import("../import/begin.ts");
  const { survey } = await import("../import/input.ts");
  const { detectFormat, readRows } = await import("../import/rows.ts");
  const { url } = invocation.api;
  const journalPath = options.journal ?? (name === "-" ? ":memory:" : `${name}.journal`);
  const beginning = {
    resume: options.resume ?? false,
    restart: options.restart ?? false,
    url,
    journalPath,
    input: name,
  };

  const earlier = options.dryRun ? ({ kind: "none" } as const) : earlierJournal(beginning);
  if ("exit" in earlier) return earlier;
  let journal: Journal | undefined = earlier.kind === "none" ? undefined : earlier.journal;
  try {
    const format = options.format ?? (await detectFormat(path, name));
    const surveyed = await survey(
      { path, name: name === "-" ? "stdin" : name },
      format,
      earlier.kind === "resume" ? journal : undefined,
    );
    if ("exit" in surveyed) return surveyed;
    const rows = () => readRows(path, format);
    if (options.dryRun) return await dryRun(invocation, { rows: rows(), total: surveyed.rows, ...options });
    const refused = await confirmWrite(
      invocation,
      `import ${amount(surveyed.rows, "row")}`,
      options.yes ?? false,
    );
    if (refused !== undefined) return refused;

    if (earlier.kind === "replace") earlier.journal.restart();
    const opened = journal ?? useJournal(beginning);
    if ("exit" in opened) return opened;
    journal = opened;
    journal.identify(surveyed);
    const plan: ImportPlan = {
      rows: rows(),
      total: surveyed.rows,
      journal,
      concurrency: options.concurrency,
      onConflict: options.onConflict ?? "reapply",
      maxAttempts: options.maxAttempts,
    };
    const { runImport } = await import("../import/run.ts");
    const { importEnding } = await import("../import/ending.ts");
    const alreadyComplete = journal.record.complete;
    return await importEnding(invocation, {
      ...(await runImport(invocation, plan)),
      total: surveyed.rows,
      name,
      journalPath,
      journal,
      alreadyComplete,
      failedPath: options.failed,
      failedRows: { format, header: surveyed.header, rows },
    });
  } catch (error) {
    return brokenOff(error, name);
  } finally {
    journal?.close();
  }
}

/** The input or the journal failed under the running import: what was replied is recorded, the rest is not done. */
async function brokenOff(error: unknown, name: string): Promise<Failure> {
  const { InputError } = await import("../import/rows.ts");
  const { code } = error as NodeJS.ErrnoException;
  const isSystemError = typeof code === "string" && /^(?:E[A-Z]+|SQLITE_.*)$/.test(code);
  if (!(error instanceof InputError) && !isSystemError) throw error;
  const { message } = error as Error;
  return failure(
    "failure",
    `the import broke off: ${message}`,
    `When that is mended: customers import ${name} --resume`,
  );
}

async function dryRun(
  invocation: Invocation,
  plan: { rows: ImportPlan["rows"]; total: number; concurrency: number },
): Promise<Ending> {
  const { forecastImport, forPrograms } = await import("../import/rehearsal.ts");
  const { forecast, stop } = await forecastImport(invocation, plan);
  const { created, updated, unchanged, failed } = forecast;
  const counts = `${created} would be created, ${updated} updated, ${unchanged} left unchanged, ${failed} would fail`;
  invocation.messages.warn(
    `dry run of ${amount(plan.total, "row")}: ${counts}; nothing was sent that writes`,
  );
  if (forPrograms(invocation)) {
    const { out } = invocation;
    await out.write(`${JSON.stringify({ dryRun: true, rows: plan.total, ...forecast })}\n`);
  }
  if (stop !== undefined) return stop;
  return failed === 0
    ? undefined
    : failure("rows-failed", `${failed} of ${amount(plan.total, "row")} would fail`);
}
