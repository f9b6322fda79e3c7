#!/usr/bin/env -S bun --no-env-file --config=/dev/null
/**
 * The process: argv and streams to an exit code, and the only place that ends it. Nothing is read from the
 * current directory: the line above stops `.env` and `bunfig.toml`, the release build does it for the
 * executable.
 */
import { EXIT_CODES } from "./outcome/exit-code.ts";
import { openOutput } from "./output/standard-output.ts";
import { runProgram } from "./program.ts";
import { ownSignals } from "./signals.ts";

if (process.platform === "win32") {
  process.stderr.write("customers runs on Linux and macOS; on Windows, run it in WSL.\n");
  process.exit(EXIT_CODES.failure.code);
}

const env = { ...process.env };
// The client checks certificates whatever this says (http/dispatcher.ts), and Bun would warn that nothing is checked. An
// editor still gets the variable, from the copy.
delete process.env["NODE_TLS_REJECT_UNAUTHORIZED"];

process.exit(
  await runProgram(process.argv.slice(2), {
    // Opening it takes as long as parsing the command line, and few commands read it.
    get stdin() {
      return process.stdin;
    },
    stdout: openOutput("stdout"),
    stderr: openOutput("stderr"),
    env,
    ...ownSignals(process),
  }),
);
