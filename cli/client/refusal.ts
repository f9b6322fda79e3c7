/** Why a request did not bring what it was for: facts alone; the code that shows them makes the words. */
import type { CompleteReply, NoCompleteReply, Reply } from "./wire/reply.ts";
import { meaningOf, type RefusalKind } from "./wire/status.ts";

export type Refusal =
  | { kind: RefusalKind; during: Stage; reply: CompleteReply }
  | { kind: "unreachable"; during: Stage; reply: NoCompleteReply }
  | { kind: "interrupted"; during: Stage; reply: NoCompleteReply };

/** What the request was for; a refused write certainly was not applied. */
type Stage = "reading" | "writing";

export type ReadRefusal =
  | Refusal
  /** The answer shows the id of another customer, or none: it is not of the one that was asked for. */
  | { kind: "mistaken"; shown: string | undefined };

export function refusalOf(reply: Reply, during: Stage): Refusal {
  if (reply.kind === "complete") return { kind: meaningOf(reply.status).kind, during, reply };
  return { kind: reply.cause === "interrupted" ? "interrupted" : "unreachable", during, reply };
}
