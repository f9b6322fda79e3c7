#!/usr/bin/env -S bun --no-env-file --config=/dev/null
/**
 * The process: argv and streams to an exit code, and the only place that ends it. Nothing is read from the
 * current directory: the line above stops `.env` and `bunfig.toml`, `bun run build` does it for the executable.
 */
import { runProgram } from "./program.ts";

process.exit(
  await runProgram(process.argv.slice(2), {
    stdin: process.stdin,
    stdout: process.stdout,
    stderr: process.stderr,
    env: process.env,
    onInterrupt(callback) {
      process.once("SIGINT", callback);
      process.once("SIGTERM", callback); // what `timeout`, cron and service managers send
    },
  }),
);
