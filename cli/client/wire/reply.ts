/**
 * What comes of a request, as a value: a complete reply, or that none came and whether anything was sent.
 * Only a bug throws.
 */
import type { ApiRequest } from "./request.ts";
import { isSuccess } from "./status.ts";

export type CompleteReply = {
  kind: "complete";
  status: number;
  /** Header fields by lower-case name; several lines of one name are joined by ", " (RFC 9110 §5.3). */
  fields: ReadonlyMap<string, string>;
  /** The decoded body. */
  text: string;
};

export type NoCompleteReply = {
  kind: "no-complete-reply";
  /**
   * False: no byte of this request left, so it can't have been applied. Where a transport can't know, true.
   */
  sent: boolean;
  cause: NoReplyCause;
  /** What happened, in words that continue "no complete reply: …". */
  detail: string;
  /** What to do about it, where that is known better than by the cause alone. */
  hint?: string;
};

export function noReply(cause: NoReplyCause, sent: boolean, detail: string = cause): NoCompleteReply {
  return { kind: "no-complete-reply", sent, cause, detail };
}

/** True where no complete reply came, and this is why. */
export function failedBy(reply: Reply, cause: NoReplyCause): boolean {
  return reply.kind === "no-complete-reply" && reply.cause === cause;
}

export type NoReplyCause = "unreachable" | "tls" | "timeout" | "reset" | "interrupted" | "unreadable";

export type Reply = CompleteReply | NoCompleteReply;

/** How requests reach one deployment. */
export type Transport = {
  /** The base URL without a trailing slash. */
  readonly url: string;
  /** @param limitMs for connecting, sending and the whole reply. @param signal ends it early. */
  send(request: ApiRequest, limitMs: number, signal: AbortSignal): Promise<Reply>;
};

/** The constructor itself refuses a label that it does not know. */
type Label = ConstructorParameters<typeof TextDecoder>[0];

/** Kept, because making one takes longer than decoding a customer. */
const STRICT_UTF_8 = new TextDecoder("utf-8", { fatal: true });

/**
 * The reply with its body as text, by the charset that its Content-Type names, else UTF-8. A success in
 * another encoding is unreadable: text with replacement characters would be written back by the next update.
 * Of a refusal the status says enough.
 */
export function completeReply(status: number, fields: ReadonlyMap<string, string>, bytes: Uint8Array): Reply {
  const charset = /;\s*charset\s*=\s*"?([^\s";]+)/i.exec(fields.get("content-type") ?? "")?.[1] ?? "utf-8";
  let text: string;
  try {
    const strict = isSuccess(status);
    const usual = charset.toLowerCase() === "utf-8";
    const decoder = usual && strict ? STRICT_UTF_8 : new TextDecoder(charset as Label, { fatal: strict });
    text = decoder.decode(bytes);
  } catch {
    if (isSuccess(status))
      return noReply("unreadable", true, `the body is not text in ${charset.toUpperCase()}`);
    text = new TextDecoder().decode(bytes);
  }
  return { kind: "complete", status, fields, text };
}

export function requestIdOf(reply: Reply): string | undefined {
  return reply.kind === "complete" ? reply.fields.get("x-request-id") : undefined;
}
