import { Journal, journalFolder } from "../run/journal.ts";
import type { RunOptions } from "../run/options.ts";
import type { Profile } from "../target/profile.ts";

/** A journal for a run that writes; a read-only one leaves nothing behind. */
export function beginJournal(
  profile: Profile,
  options: RunOptions,
  env: Readonly<Record<string, string | undefined>>,
): Journal | undefined {
  if (options.mode === "read-only") return undefined;
  return Journal.begin(journalFolder(env), {
    pid: process.pid,
    baseUrl: profile.baseUrl,
    startedAt: new Date().toISOString(),
    arguments: options.arguments,
  });
}
