/** Writes to a protected profile, and deletions, ask; without a terminal they need --yes. */

import type { Ending, Invocation } from "../../invocation.ts";
import { type Failure, failure } from "../../outcome/failure.ts";

/** @param what continues "About to …": `delete customer X`. Undefined: go on. */
export async function confirmWrite(invocation: Invocation, what: string, yes: boolean): Promise<Ending> {
  const { settings } = invocation;
  if (settings.protectedBy === undefined || yes) return undefined;
  return ask(
    invocation,
    `About to ${what} at ${settings.url} (profile "${settings.protectedBy}" is protected).`,
  );
}

export async function ask({ terminal }: Invocation, statement: string): Promise<Ending> {
  if (!terminal.interactive) return unasked(statement);
  const answer = await terminal.ask(`${statement} Go on? [y/N] `);
  return /^y(?:es)?$/i.test(answer?.trim() ?? "")
    ? undefined
    : failure("failure", "not confirmed; nothing was sent");
}

/** No prompt without a terminal: nobody would see it. */
export function unasked(statement: string): Failure {
  return failure(
    "usage",
    `${statement} Nothing was sent: there is no terminal to ask on`,
    "Give --yes to do it without asking.",
  );
}
