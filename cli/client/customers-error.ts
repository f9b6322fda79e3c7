/** Why a call of the library failed: the facts as a value, and one sentence. */
import type { CreationStopped } from "./creation.ts";
import { parseJsonOrUndefined, plainText } from "./customer.ts";
import { isJsonObject } from "./json.ts";
import type { WriteOutcome } from "./loop/write-outcome.ts";
import type { ListFailure } from "./pages.ts";
import type { ReadRefusal } from "./refusal.ts";

/** `written`: a reply said so. `as-wanted`: the customer is so, and no reply says that this is our doing. */
export type Written = Extract<WriteOutcome, { kind: "written" | "unchanged" | "as-wanted" }>;

/**
 * Why a call failed, by `kind`; of a conflict, `changes` names who else wrote, where the server says it. All but
 * `unknown-outcome`: nothing of the call was applied. `usage`: the arguments can't be sent, and nothing was.
 */
export type CustomersFailure =
  | Exclude<WriteOutcome, Written>
  | ReadRefusal
  | ListFailure
  | CreationStopped
  | { kind: "usage"; mistake: string };

export class CustomersError extends Error {
  readonly failure: CustomersFailure;

  constructor(what: string, failure: CustomersFailure) {
    super(`${what}: ${inWords(failure)}`);
    this.name = "CustomersError";
    this.failure = failure;
  }
}

/** Of an argument: a mistake of the program, such as a variable that was never set; no reply could say so. */
export function demand(ok: boolean, mistake: string): void {
  if (!ok) throw new CustomersError("nothing was sent", { kind: "usage", mistake });
}

function inWords(failure: CustomersFailure): string {
  if (failure.kind === "usage") return failure.mistake;
  const { kind } = failure;
  const reply = "unclear" in failure ? failure.unclear : "reply" in failure && failure.reply;
  if (!reply) return kind;
  if (reply.kind !== "complete") return `${kind}: ${reply.detail}`;
  const problem = parseJsonOrUndefined(reply.text);
  const detail = isJsonObject(problem) && problem.get("detail");
  return `${kind} (${reply.status})${detail ? `: ${plainText(detail)}` : ""}`;
}
