/** Several customers in one command: ids as arguments, or `-` for one a line on standard input. */
import { buffer } from "node:stream/consumers";
import { checkedUtf8 } from "../../files/utf-8.ts";
import type { Ending, Invocation } from "../../invocation.ts";
import { amount, count } from "../../outcome/amount.ts";
import { type Failure, failure, UsageError } from "../../outcome/failure.ts";
import { untilInterrupted } from "../../outcome/until-interrupted.ts";

/** @param words ids, or `-`. Throws a UsageError where there is no id, and where standard input holds the token or is not UTF-8. */
export async function idsOf(
  words: readonly string[],
  { host, flags, interrupted }: Pick<Invocation, "host" | "flags" | "interrupted">,
): Promise<readonly string[]> {
  if (!words.includes("-")) return words;
  if (flags.tokenStdin) {
    throw new UsageError("stdin can't hold both the token and the ids", "Give the token as --token-file.");
  }
  const input = checkedUtf8(await untilInterrupted(buffer(host.stdin), interrupted), "standard input");
  const lines = input.split("\n").map((line) => line.trim());
  const ids = words.flatMap((word) => (word === "-" ? lines.filter((line) => line !== "") : [word]));
  if (ids.length === 0) throw new UsageError("there is no id on standard input", "Give one id a line.");
  return ids;
}

/** A tag names a version of one customer. */
export function onlyOne(option: string, tag: string | undefined, ids: readonly string[]): void {
  if (tag !== undefined && ids.length > 1)
    throw new UsageError(`${option} names a version of one customer`, "Give one id with it.");
}

/** The next customer would meet it too. A 403 may concern this one alone. */
function isOfEveryOne({ exit, status }: Failure): boolean {
  return ["interrupted", "unreachable", "usage"].includes(exit) || status === 401;
}

const READ_IT = "Read it with: customers get ID";

/**
 * Does the work for one after another. One id ends as its work does; of several, the failures are printed as they come,
 * and some failures make exit 9; an unknown outcome among them, exit 8.
 * @param done continues "3 of 4 customers …": `updated`.
 */
export async function forEachId(
  { messages, interrupted }: Invocation,
  ids: readonly string[],
  done: string,
  work: (id: string) => Promise<Ending>,
): Promise<Ending> {
  const [only] = ids;
  if (only !== undefined && ids.length === 1) return await work(only);
  let failed = 0;
  let unknown = 0;
  let unshown = 0;
  const exitOf = (otherwise: Failure["exit"]) => (unknown > 0 ? "unknown-outcome" : otherwise);
  for (const [at, id] of ids.entries()) {
    const ending = interrupted.aborted ? failure("interrupted", "interrupted") : await work(id);
    if (ending === undefined) continue;
    if (ending.isWritten) {
      unshown += 1;
      messages.warn(ending.message);
      continue;
    }
    if (isOfEveryOne(ending)) {
      const message = `${ending.message}; ${amount(ids.length - at, "customer")} of ${ids.length} not done yet, from ${id} on`;
      // Its own exit would say that nothing was written.
      return { ...ending, message, exit: exitOf(at > failed ? "rows-failed" : ending.exit) };
    }
    failed += 1;
    if (ending.exit === "unknown-outcome") unknown += 1;
    messages.warn(ending.message);
  }
  const all = `${amount(ids.length, "customer")} ${done}`;
  if (failed === 0 && unshown > 0)
    return failure("failure", `${all}; ${count(unshown)} of them could not be shown`, READ_IT);
  if (failed === 0) {
    messages.note(all);
    return undefined;
  }
  const what = unknown > 0 ? "with an unknown outcome" : "failed";
  const unshownText = unshown > 0 ? `; ${count(unshown)} of those ${done} could not be shown` : "";
  const message = `${unknown || failed} of ${amount(ids.length, "customer")} ${what}${unshownText}`;
  return failure(exitOf("rows-failed"), message, unshown > 0 ? READ_IT : undefined);
}
