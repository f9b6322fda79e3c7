/** What came of a request that was sent. A failure to get a complete reply is a value, not an exception. */
import type { Reply } from "./http-reply.ts";

export type Result = {
  readonly reply: Reply | null;
  /** Why there is no complete reply. */
  readonly failure: string | null;
  /** `performance.now()` when the last byte of the request left; for an early reply, when the first byte left. */
  readonly sentAt: number;
  /** `performance.now()` when the reply was complete. */
  readonly answeredAt: number;
  /** Whether the reply, or the end of the connection, came before the request was complete. */
  readonly early: boolean;
};

export function resultOf(
  reply: Reply | string,
  sentAt: number,
  answeredAt = performance.now(),
  early = false,
): Result {
  const times = { sentAt, answeredAt, early };
  return typeof reply === "string"
    ? { reply: null, failure: reply, ...times }
    : { reply, failure: null, ...times };
}

/** A larger reply can't be a customer. */
export const REPLY_BYTES_MAX = 8 * 1024 * 1024;

/** A proxy on the way answered in place of the service. */
export const PROXY_CREDENTIALS =
  "a proxy on the way asks for credentials (407): name it with user and password in http_proxy or https_proxy";

/** 407 is a proxy's answer; the service was never asked. undici says it of a refused tunnel only in words. */
export function behindProxy(result: Result): Result {
  const refused = result.reply?.status === 407 || /\b407\b/.test(result.failure ?? "");
  return refused ? { ...result, reply: null, failure: PROXY_CREDENTIALS } : result;
}

/** The message of an error, with its code. */
export function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const code = (error as { code?: unknown }).code;
  return typeof code === "string" && !error.message.includes(code)
    ? `${error.message} (${code})`
    : error.message;
}
