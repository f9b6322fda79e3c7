import { replyHeaders } from "./reply/reply.ts";

/** The request headers that the service reads and a page could not send otherwise. */
const ALLOWED_HEADERS =
  "Authorization, Content-Type, If-Match, If-None-Match, Prefer, Idempotency-Key, X-Request-Id";
/**
 * All that replies carry, but those that any page may read
 * (Fetch standard, "CORS-safelisted response-header name").
 */
const EXPOSED_HEADERS =
  "Accept-Encoding, Accept-Patch, Allow, Content-Security-Policy, Cross-Origin-Opener-Policy, Date, ETag, " +
  "Idempotency-Replayed, Link, Location, Precondition-Enforced-From, Preference-Applied, RateLimit, " +
  "RateLimit-Policy, Referrer-Policy, Retry-After, Token-Expires, Vary, WWW-Authenticate, " +
  "X-Content-Type-Options, X-Request-Id";
/** How long a browser may act on an old preflight after a setting was changed. */
const PREFLIGHT_SECONDS = "600";

/**
 * Cross-origin requests of browser pages of the configured origins (Fetch standard); "*" is any. None: off.
 */
export class Cors {
  readonly #origins: ReadonlySet<string>;
  readonly #allowedHeaders: string;

  /** @param requestHeaders further ones that a page may send, such as traceparent */
  constructor(origins: readonly string[], requestHeaders: readonly string[]) {
    this.#origins = new Set(origins);
    this.#allowedHeaders = [ALLOWED_HEADERS, ...requestHeaders].join(", ");
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
      "access-control-allow-headers": this.#allowedHeaders,
      "access-control-max-age": PREFLIGHT_SECONDS,
    });
  }

  /** Adds the headers for the origin of the request. Without a configured origin it adds none. */
  decorate(requestHeaders: Headers, headers: Headers): void {
    if (this.#origins.size === 0) return;
    headers.append("vary", "Origin");
    const origin = requestHeaders.get("origin");
    if (origin === null || !(this.#origins.has(origin) || this.#origins.has("*"))) return;
    headers.set("access-control-allow-origin", origin);
    headers.set("access-control-expose-headers", EXPOSED_HEADERS);
  }
}
