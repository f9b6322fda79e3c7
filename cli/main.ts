#!/usr/bin/env -S bun --no-env-file --config=/dev/null
/**
 * The process: argv and streams to an exit code, and the only place that ends it. Nothing is read from the
 * current directory: the line above stops `.env` and `bunfig.toml`, the release build does it for the
 * executable.
 */
import { readFileSync } from "node:fs";
import { EXIT_CODES } from "./outcome/exit-code.ts";
import { runProgram } from "./program.ts";
import { ownSignals } from "./signals.ts";

if (process.platform === "win32") {
  process.stderr.write("customers runs on Linux and macOS; on Windows, run it in WSL.\n");
  process.exit(EXIT_CODES.failure.code);
}

process.exit(
  await runProgram(process.argv.slice(2), {
    stdin: process.stdin,
    stdout: process.stdout,
    stderr: process.stderr,
    env: originalEnvironment(),
    ...ownSignals(process),
  }),
);

/**
 * The environment as the process got it. Started as `bun main.ts`, Bun adds what a `.env` of the current
 * directory says to process.env; the kernel's copy is from before that. Elsewhere than on Linux there is
 * none.
 */
function originalEnvironment(): Record<string, string | undefined> {
  try {
    const entries = readFileSync("/proc/self/environ", "utf8").split("\0");
    return Object.fromEntries(entries.filter((entry) => entry.includes("=")).map(splitEntry));
  } catch {
    return process.env;
  }
}

function splitEntry(entry: string): [string, string] {
  const at = entry.indexOf("=");
  return [entry.slice(0, at), entry.slice(at + 1)];
}
