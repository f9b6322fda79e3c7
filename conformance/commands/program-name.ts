/** How the kit was started, so that the commands that it prints run as printed. */
import { basename, relative } from "node:path";
import { shellQuoted } from "../report/command-line.ts";

/** @param argv of the process: the runtime, then the entry point as it was named */
export function programName(
  argv: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
  cwd: string,
): string {
  if (env["npm_lifecycle_event"] === "conformance") return "bun run conformance";
  const entry = argv[1] ?? "";
  // A link of an installed package; anybody on that PATH has it.
  if (!entry.endsWith(".ts")) return basename(entry);
  const below = relative(cwd, entry);
  return `bun ${shellQuoted(below.length < entry.length ? below : entry)}`;
}
