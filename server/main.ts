#!/usr/bin/env -S bun --no-env-file
// First of all, before the rest of the program is loaded.
import "./commands/reload-signal.ts";

// Databases, tokens and backups are readable by their owner alone.
process.umask(0o077);

const { runCommand } = await import("./commands/program.ts");
process.exitCode = await runCommand(process.argv);
