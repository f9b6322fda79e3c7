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
};

/** The headers of a reply, with what every reply has. */
export function replyHeaders(headers: Readonly<Record<string, string>>): Headers {
  return new Headers({ ...headers, "x-content-type-options": "nosniff" });
}
