import type { ProblemCode } from "../domain/problem.ts";
import type { Caller } from "../storage/sqlite/token-rows.ts";

/** The routes as metrics and logs name them: a template, never an id. */
export type RouteTemplate =
  | "/customers"
  | "/customers/search"
  | "/customers/{id}"
  | "/metrics"
  | "/healthz"
  | "/readyz"
  | "/problems/{code}"
  | "(none)";

/** One request on its way through the service, as far as logs, metrics and headers need to know it. */
export type Exchange = {
  readonly request: Request;
  readonly route: RouteTemplate;
  /** The path's one parameter, decoded; "" where it has none. */
  readonly parameter: string;
  /** The caller's own X-Request-Id where it is usable, else a new UUID. */
  readonly requestId: string;
  /** performance.now() at the start. */
  readonly startedAt: number;
  readonly nowMs: number;
  /** Set once the token has been found. */
  caller: Caller | null;
};

/** What is answered, before it becomes a Response; a value, so that it is made once and can be looked at. */
export type Answer = {
  readonly status: number;
  /** Of {@link answerHeaders}; never changed once they are here, so that many answers share them. */
  readonly headers: Headers;
  /** The entity-tag, quotes included, where there is one. */
  readonly etag?: string;
  readonly body: string | null;
  /** The refusal behind a problem document, for the log. */
  readonly problem?: ProblemCode;
  /** A write without If-Match that a rollout let pass. */
  readonly allowedWithoutIfMatch?: boolean;
};

/** The headers of an answer, with what every answer has. */
export function answerHeaders(headers: Readonly<Record<string, string>>): Headers {
  return new Headers({ ...headers, "x-content-type-options": "nosniff" });
}

/** The query string of a request, without its question mark. */
export function searchOf({ url }: Request): string {
  const start = url.indexOf("?");
  return start === -1 ? "" : url.slice(start + 1);
}
