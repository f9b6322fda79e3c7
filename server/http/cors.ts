import { replyHeaders } from "./reply.ts";

const ALLOWED_HEADERS =
  "Authorization, Content-Type, If-Match, If-None-Match, Prefer, Idempotency-Key, X-Request-Id";
const EXPOSED_HEADERS = "ETag, Location, Link, Retry-After, X-Request-Id, Preference-Applied";
const PREFLIGHT_SECONDS = "600";

/** Cross-origin reads for browser pages of the configured origins (Fetch standard); "*" is any. None: off. */
export class Cors {
  readonly #origins: ReadonlySet<string>;

  constructor(origins: readonly string[]) {
    this.#origins = new Set(origins);
  }

  isPreflight(request: Request): boolean {
    return (
      this.#origins.size > 0 &&
      request.method === "OPTIONS" &&
      request.headers.has("origin") &&
      request.headers.has("access-control-request-method")
    );
  }

  /** @param allow the methods of the route, as its Allow header lists them */
  preflightHeaders(allow: string): Headers {
    return replyHeaders({
      allow,
      "access-control-allow-methods": allow,
      "access-control-allow-headers": ALLOWED_HEADERS,
      "access-control-max-age": PREFLIGHT_SECONDS,
    });
  }

  /** Adds what a response to this origin carries; without a configured origin, nothing. */
  decorate(request: Request, headers: Headers): void {
    if (this.#origins.size === 0) return;
    headers.append("vary", "Origin");
    const origin = request.headers.get("origin");
    if (origin === null || !(this.#origins.has(origin) || this.#origins.has("*"))) return;
    headers.set("access-control-allow-origin", origin);
    headers.set("access-control-expose-headers", EXPOSED_HEADERS);
  }
}
