#!/usr/bin/env -S bun --no-env-file --config=/dev/null
/** The entry point of the conformance kit. */
import { CommanderError } from "commander";
import { programName } from "./commands/program-name.ts";
import { makeProgram } from "./program.ts";
import { ProfileFault } from "./target/profile.ts";

const USAGE = 2;
const KIT_FAULT = 5;

let exitCode = 0;
let outputFailed = false;

process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  // `| head` closes the pipe early; what was found still decides the exit code.
  if (error.code === "EPIPE" || outputFailed) return;
  outputFailed = true;
  process.stderr.write(`Standard output can't be written: ${error.message}\n`);
  process.exitCode = KIT_FAULT;
});

const program = makeProgram((code) => {
  exitCode = code;
});
program.name(programName(process.argv, process.env, process.cwd()));
for (const command of [program, ...program.commands]) command.exitOverride();

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
