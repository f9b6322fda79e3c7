#!/usr/bin/env -S bun --no-env-file
import { takeSignals } from "./commands/common/signals.ts";

// First of all: the rest of the program is loaded below.
takeSignals();

// Databases, tokens and backups are readable by their owner alone.
process.umask(0o077);

const { runCommand } = await import("./commands/program.ts");
process.exitCode = await runCommand(process.argv);
