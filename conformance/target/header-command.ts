/** Credentials that expire: a command prints header lines, and is run again when the service answers 401. */
import { type CallerHeader, type Environment, HeaderReader } from "./caller-header.ts";
import type { Secret } from "./mask.ts";

export type Printed = { readonly headers: readonly CallerHeader[]; readonly secrets: readonly Secret[] };

/** A command that asks for a password would wait forever. */
const COMMAND_MS = 30_000;

/** @returns what the command printed, one `Name: value` a line; or why it can't be used. */
export function runHeaderCommand(command: string, env: Environment): Printed | string {
  const { stdout, stderr, exitCode, success } = Bun.spawnSync(["sh", "-c", command], {
    env: { ...env },
    stdin: "ignore",
    timeout: COMMAND_MS,
  });
  // Its standard output may hold a secret, even where it failed.
  const complaint = stderr.toString().trim().split("\n").at(-1) ?? "";
  if (!success) return `it ended with ${exitCode ?? "a signal"}${complaint === "" ? "" : `: ${complaint}`}`;
  const lines = stdout
    .toString()
    .split(/\r?\n/)
    .filter((line) => line.trim() !== "");
  if (lines.length === 0) return "it printed no header line";
  const reader = new HeaderReader({});
  const headers = reader.lines(lines, "");
  return reader.faults.length > 0
    ? "it must print lines of the form 'Name: value'"
    : { headers, secrets: reader.secrets };
}
