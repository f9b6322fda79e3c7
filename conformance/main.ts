#!/usr/bin/env -S bun --no-env-file --config=/dev/null
/** The command line of the conformance kit. Exit codes: README.md. */
import { join } from "node:path";
import { Command, CommanderError } from "commander";
import { cleanup } from "./commands/cleanup.ts";
import { doctor } from "./commands/doctor.ts";
import { init } from "./commands/init.ts";
import { replay } from "./commands/replay.ts";
import { addReportCommand } from "./commands/report.ts";
import { DEFAULT_OUT, printReport, REPORT_FILE, run, writeReports } from "./commands/run.ts";
import type { RunFlags } from "./commands/run-flags.ts";
import { addRunOptions } from "./commands/run-options.ts";
import { addTargetOptions, profileOf, type TargetFlags } from "./commands/target-options.ts";
import { rulesMarkdown, rulesText } from "./report/rule-listing.ts";
import { ProfileFault } from "./target/profile.ts";
import { VERSION } from "./version.ts";

const USAGE = 2;
const KIT_FAULT = 5;

const program = new Command("conformance")
  .description("Tests a deployment of the customer resource API against its specification.")
  .version(VERSION)
  .exitOverride()
  .configureOutput({ writeErr: (text) => process.stderr.write(text) })
  .addHelpText(
    "after",
    "\nExit codes: 0 conforms · 1 violation · 2 usage · 3 incomplete · 4 unreachable · 5 kit fault · 6 fixtures left · 130 interrupted",
  );

let exitCode = 0;

// `| head` closes the pipe early; what was found still decides the exit code.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code !== "EPIPE") throw error;
});

addRunOptions(program.command("run"))
  .description("run the rules and write report.json, junit.xml, report.html, report.md and report.sarif")
  .action(async (flags: RunFlags) => {
    const { report } = await run(flags, process.argv.slice(3));
    const leaks = writeReports(report, flags.out ?? DEFAULT_OUT, profileOf(flags, process.env).secrets);
    printReport(report);
    console.log(
      `Reports: ${join(flags.out ?? DEFAULT_OUT, "report.html")}, ${REPORT_FILE}, junit.xml, report.md, report.sarif`,
    );
    exitCode = report.exitCode;
    if (leaks.length > 0) {
      console.error(`a secret would have stood in ${leaks.join(", ")}; it was taken out`);
      exitCode = KIT_FAULT;
    }
  });

addTargetOptions(program.command("init <url>"))
  .description("probe a deployment and write a profile with the evidence for each point")
  .option("--write <file>", "the profile", "conformance.toml")
  .option("--force", "write over an existing file")
  .action(async (url: string, flags: TargetFlags & { write?: string; force?: boolean }) => {
    exitCode = await init(url, flags);
  });

program
  .command("rules")
  .description("list the rules")
  .option("--markdown", "as RULES.md")
  .action(({ markdown }: { markdown?: boolean }) => {
    process.stdout.write(markdown ? rulesMarkdown() : rulesText());
  });

addRunOptions(program.command("replay <id>"))
  .description("run one rule again and show every request and reply")
  .option("--from <file>", "the report whose flags are used", join(DEFAULT_OUT, REPORT_FILE))
  .action(async (id: string, { from, ...flags }: RunFlags & { from: string }) => {
    exitCode = await replay(id, from, flags);
  });

addReportCommand(program, (code) => {
  exitCode = code;
});

addTargetOptions(program.command("cleanup"))
  .description("put right what a killed run left, from its journal")
  .option("--out <dir>", "accepted so that the flags of `run` can be given again; journals do not lie there")
  .action(async (flags: TargetFlags) => {
    exitCode = await cleanup(flags);
  });

addTargetOptions(program.command("doctor"))
  .description("check the kit itself, and whether it reaches the deployment")
  .action(async (flags: TargetFlags) => {
    exitCode = await doctor(flags);
  });

try {
  await program.parseAsync(process.argv);
} catch (error) {
  if (error instanceof CommanderError) exitCode = error.exitCode === 0 ? 0 : USAGE;
  else if (error instanceof ProfileFault) {
    for (const fault of error.faults) console.error(fault);
    exitCode = USAGE;
  } else {
    console.error(error instanceof Error ? (error.stack ?? error.message) : String(error));
    exitCode = KIT_FAULT;
  }
}
// Output to a pipe is flushed only if the process ends by itself.
process.exitCode = exitCode;
