#!/usr/bin/env -S bun --no-env-file --config=/dev/null
/** The entry point of the conformance kit. */
import { runProgram } from "./program.ts";

process.exitCode = await runProgram();
