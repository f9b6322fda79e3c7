/** `run`: the rules against a deployment, and the reports of it. */
import { isatty } from "node:tty";
import type { Command } from "commander";
import { DEFAULT_OUT } from "../report/command-line.ts";
import type { Finding } from "../report/make.ts";
import { terminal } from "../report/renderers/terminal.ts";
import type { Report } from "../report/schema.ts";
import { catalogue } from "../rules/catalogue.ts";
import { runKit } from "../run/engine.ts";
import { messageOf } from "../target/message.ts";
import type { Profile } from "../target/profile.ts";
import { print, standardOutput } from "./print.ts";
import { checkFolder, REPORT_FILES, writeReports } from "./report-files.ts";
import { addRunOptions, type RunFlags, runOptions } from "./run-flags.ts";
import { beginJournal } from "./run-journal.ts";
import { profileOf } from "./target-options.ts";

export function addRunCommand(program: Command, end: (exitCode: number) => void): void {
  addRunOptions(program.command("run"))
    .description(`run the rules and write ${REPORT_FILES.join(", ")}`)
    .action(async (flags: RunFlags) => end(await runAndWrite(flags, process.argv.slice(3))));
}

/** @returns the exit code. @throws ProfileFault on wrong usage. */
async function runAndWrite(flags: RunFlags, words: readonly string[]): Promise<number> {
  const folder = flags.out ?? DEFAULT_OUT;
  const profile = profileOf(flags, process.env);
  checkFolder(folder);
  const report = await run(profile, flags, words);
  // First of all: what was found must not be lost with a disk that has filled up.
  printReport(report);
  try {
    const leaks = writeReports(report, folder, profile.secrets);
    print(`Reports in ${folder}: ${REPORT_FILES.join(", ")}`);
    if (leaks.length === 0) return report.exitCode;
    console.error(`A secret stood in ${leaks.join(", ")} and was removed. This is a fault of the kit.`);
  } catch (error) {
    console.error(`The reports could not be written to ${folder}: ${messageOf(error)}`);
  }
  return KIT_FAULT;
}

/** @throws ProfileFault on wrong usage. */
export async function run(
  profile: Profile,
  flags: RunFlags,
  words: readonly string[],
  observe?: (finding: Finding) => void,
): Promise<Report> {
  const options = runOptions(flags, profile, words);
  const abort = new AbortController();
  const interrupt = () => {
    // A second signal does not wait for the clean-up.
    if (abort.signal.aborted) process.exit(130);
    console.error("\nInterrupted: cleaning up. Interrupt again to leave at once.");
    abort.abort();
  };
  process.on("SIGINT", interrupt);
  process.on("SIGTERM", interrupt);
  const journal = beginJournal(profile, options, process.env);
  const progress = isatty(2) ? progressLine() : undefined;
  try {
    const report = await runKit(profile, { ...options, signal: abort.signal, journal }, (finding) => {
      progress?.(finding);
      observe?.(finding);
    });
    progress?.(undefined);
    return report;
  } finally {
    process.off("SIGINT", interrupt);
    process.off("SIGTERM", interrupt);
  }
}

const KIT_FAULT = 5;

function progressLine(): (finding: Finding | undefined) => void {
  let done = 0;
  return (finding) => {
    done += 1;
    process.stderr.write(
      finding === undefined
        ? "\r\x1b[K"
        : `\r\x1b[K${done}/${catalogue.length} ${finding.rule.id} ${finding.outcome}`,
    );
  };
}

export function printReport(report: Report): void {
  const columns = standardOutput.columns();
  const color = columns !== null && process.env["NO_COLOR"] === undefined;
  const text = terminal(report, { color, width: Math.min(columns || 110, 140) });
  // A file on a full disk, say. What was found is shown in any case.
  if (!print(text)) console.error(text);
}
