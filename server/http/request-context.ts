import type { Caller } from "../storage/tokens/token-store.ts";
import type { RateLimitFields } from "./limits/caller-limits.ts";

/**
 * The paths of the routes as the specification writes them;
 * metrics and logs name a route by it, never by an id.
 */
export type RoutePath =
  | "/customers"
  | "/customers/search"
  | "/customers/{id}"
  | "/customers/{id}/history"
  | "/metrics"
  | "/healthz"
  | "/readyz"
  | "/problems"
  | "/problems/{code}"
  | "/"
  | "/docs"
  | "/docs/{file}"
  | "/openapi.json"
  | "/openapi.yaml";

/** What everything between the socket and an operation knows of one request. */
export type RequestContext = {
  readonly request: Request;
  /** Of the request, which makes an object of them each time that they are asked for. */
  readonly headers: Headers;
  /** "(none)" where no route has the request's path. */
  readonly route: RoutePath | "(none)";
  /** The path's one parameter, decoded; "" where it has none. */
  readonly parameter: string;
  /** Of the client; "" where nothing listens, as in tests. */
  readonly address: string;
  /** The caller's own X-Request-Id where it is usable, else a new UUID. */
  readonly requestId: string;
  /** performance.now() at the start. */
  readonly startedAt: number;
  /** ms since 1970, at the start. */
  readonly nowMs: number;
  /** Null until the token has been found, and on routes that anyone may use. */
  caller: Caller | null;
  /** Of the limits that the request was held to. */
  rateLimit: RateLimitFields | null;
};

/** The query string of a request, with its question mark: `URLSearchParams` takes one away, also a second one. */
export function searchOf({ url }: Request): string {
  const start = url.indexOf("?");
  return start === -1 ? "" : url.slice(start);
}
