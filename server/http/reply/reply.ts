import type { ProblemCode } from "../../domain/problem.ts";

/** What is answered, before the pipeline makes the one Response of it. */
export type Reply = {
  readonly status: number;
  /** Of {@link replyHeaders}; never changed once they are here, so that many replies share them. */
  readonly headers: Headers;
  /** The entity-tag, quotes included, where there is one. */
  readonly etag?: string;
  readonly body: string | null;
  /** The refusal behind a problem document, for the log. */
  readonly problem?: ProblemCode;
  /** A write without If-Match that a rollout let pass. */
  readonly allowedWithoutIfMatch?: boolean;
  /** The outcome of an earlier request under the same Idempotency-Key: nothing was applied. */
  readonly isReplayed?: boolean;
};

const NOSNIFF = { "x-content-type-options": "nosniff" };

/** The headers of what only a request with a token gets, which no browser shows by itself. */
export function callerHeaders(headers: Readonly<Record<string, string>>): Headers {
  return new Headers({ ...headers, ...NOSNIFF });
}

/**
 * The headers of what a browser may show. It runs and loads nothing there unless a page says otherwise, no page
 * may frame it, and the links in it tell no one where the reader came from.
 */
export function replyHeaders(headers: Readonly<Record<string, string>>): Headers {
  return new Headers({
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "referrer-policy": "no-referrer",
    ...headers,
    ...NOSNIFF,
  });
}

/** Of pages: one that opened it, and may be of anyone, gets no hold of its window. A reader types a token into /docs. */
export const SAME_OPENER = { "cross-origin-opener-policy": "same-origin" };
