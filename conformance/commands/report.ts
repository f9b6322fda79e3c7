/** `report`: draws the reports of an earlier run again, or compares two runs. */
import type { Command } from "commander";
import { diff, gateExitCode } from "../report/diff.ts";
import { readReport } from "../report/report-file.ts";
import { ProfileFault } from "../target/profile.ts";
import { printText } from "./print.ts";
import { checkFolder, writeReports } from "./report-files.ts";
import { printReport } from "./run.ts";

type ReportFlags = { from: string; diff?: string; failOnNew?: boolean; out?: string };

export function addReportCommand(program: Command, end: (exitCode: number) => void): void {
  program
    .command("report")
    .description("draw the reports of an earlier run again, or compare two runs")
    .requiredOption("--from <file>", "report.json of the run")
    .option("--diff <file>", "an older report.json: print what is new, fixed, still broken, no longer run")
    .option("--fail-on-new", "with --diff: exit 1 on a new violation, 3 where less was tested")
    .option("--out <dir>", "write all report files there")
    .action((flags: ReportFlags) => end(report(flags)));
}

/** @returns the exit code. @throws ProfileFault on wrong usage. */
function report({ from, diff: older, failOnNew, out }: ReportFlags): number {
  if (failOnNew && older === undefined)
    throw new ProfileFault(["--fail-on-new compares two runs: give the older report.json by --diff"]);
  if (older !== undefined && out !== undefined)
    throw new ProfileFault(["--diff prints a comparison and writes no file. Leave out --out, or --diff."]);
  const newer = readReport(from);
  if (older !== undefined) {
    const before = readReport(older);
    printText(diff(before, newer));
    return failOnNew ? gateExitCode(before, newer) : 0;
  }
  if (out !== undefined) {
    checkFolder(out);
    writeReports(newer, out, []);
  }
  printReport(newer);
  return 0;
}
