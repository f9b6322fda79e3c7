#!/usr/bin/env -S bun --no-env-file --config=/dev/null
/** The entry point of the conformance kit. */
import { KIT_FAULT, runProgram } from "./program.ts";

let outputFailed = false;

process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  // `| head` closes the pipe early; what was found still decides the exit code.
  if (error.code === "EPIPE" || outputFailed) return;
  outputFailed = true;
  process.stderr.write(`Standard output can't be written: ${error.message}\n`);
  process.exitCode = KIT_FAULT;
});

const exitCode = await runProgram();
// Output to a pipe is flushed only if the process ends by itself.
process.exitCode = outputFailed ? KIT_FAULT : exitCode;
