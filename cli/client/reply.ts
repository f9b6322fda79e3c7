/**
 * What comes of a request, as a value: a complete reply, or that none came and whether anything was sent.
 * Only a bug throws.
 */
import type { Deadline } from "./deadline.ts";
import type { ApiRequest } from "./request.ts";

export type CompleteReply = {
  kind: "complete";
  status: number;
  /** Header fields by lower-case name; several lines of one name are joined by ", " (RFC 9110 §5.3). */
  fields: ReadonlyMap<string, string>;
  /** The body as UTF-8. */
  text: string;
};

export type NoCompleteReply = {
  kind: "no-complete-reply";
  /** False: no byte of this request left, so it can't have been applied. */
  sent: boolean;
  cause: NoReplyCause;
  /** What happened, in words that continue "no complete reply: …". */
  detail: string;
  /** What would mend it, where that is known better than by the cause alone. */
  hint?: string;
};

export type NoReplyCause = "unreachable" | "tls" | "timeout" | "reset" | "interrupted" | "unreadable";

export type Reply = CompleteReply | NoCompleteReply;

export type CustomersApi = {
  /** The base URL without a trailing slash, for messages. Throws a UsageError where none is set. */
  readonly url: string;
  /** @param withinMs a limit for this request alone, below what the deadline leaves. */
  send(request: ApiRequest, deadline: Deadline, withinMs?: number): Promise<Reply>;
  close(): Promise<void>;
};
