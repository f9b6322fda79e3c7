import { Journal, journalFolder } from "../target/journal.ts";
import { messageOf } from "../target/message.ts";
import type { RunOptions } from "../target/options.ts";
import { type Profile, ProfileFault } from "../target/profile.ts";

/**
 * A journal for a run that writes; a read-only one leaves nothing behind.
 * @throws ProfileFault where it can't be written: a killed run could then not be cleaned up.
 */
export function beginJournal(
  profile: Profile,
  { mode, arguments: words }: Pick<RunOptions, "mode" | "arguments">,
  env: Readonly<Record<string, string | undefined>>,
): Journal | undefined {
  if (mode === "read-only") return undefined;
  const folder = journalFolder(env);
  try {
    return Journal.begin(folder, {
      pid: process.pid,
      baseUrl: profile.baseUrl,
      startedAt: new Date().toISOString(),
      arguments: words,
    });
  } catch (error) {
    throw new ProfileFault([
      `the journal can't be written in ${folder}: ${messageOf(error)}. Name another folder in CUSTOMERS_CONFORMANCE_STATE.`,
    ]);
  }
}
