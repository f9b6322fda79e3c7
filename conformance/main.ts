#!/usr/bin/env -S bun --no-env-file --config=/dev/null
/** The command line of the conformance kit. Exit codes: README.md. */
import { Command, CommanderError } from "commander";
import { addCleanupCommand } from "./commands/cleanup.ts";
import { addDoctorCommand } from "./commands/doctor.ts";
import { addInitCommand } from "./commands/init.ts";
import { addReplayCommand } from "./commands/replay.ts";
import { addReportCommand } from "./commands/report.ts";
import { addRulesCommand } from "./commands/rules.ts";
import { addRunCommand } from "./commands/run.ts";
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
let outputFailed = false;
const end = (code: number) => {
  exitCode = code;
};

process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  // `| head` closes the pipe early; what was found still decides the exit code.
  if (error.code === "EPIPE" || outputFailed) return;
  outputFailed = true;
  process.stderr.write(`Standard output can't be written: ${error.message}\n`);
  process.exitCode = KIT_FAULT;
});

addRunCommand(program, end);
addInitCommand(program, end);
addRulesCommand(program);
addReplayCommand(program, end);
addReportCommand(program, end);
addCleanupCommand(program, end);
addDoctorCommand(program, end);

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
process.exitCode = outputFailed ? KIT_FAULT : exitCode;
