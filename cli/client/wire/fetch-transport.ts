/** Requests over `fetch`, which browsers, Node, Deno and Bun have. */
import { TIMER_MS_MAX } from "./deadline.ts";
import { hasEmptyPort } from "./empty-port.ts";
import { completeReply, noReply, type Transport } from "./reply.ts";

type FetchOptions = {
  /** The base URL; a trailing slash is ignored. */
  url: string;
  /** Sent with every request. */
  headers: Readonly<Record<string, string>>;
  fetch: typeof globalThis.fetch;
};

/**
 * Codes of Node's, Bun's and Deno's `fetch` that only a connection which never opened ends with, and Node's words for a port
 * that it refuses.
 */
const NEVER_OPENED = new Set(["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "bad port"]);

/**
 * But for these, `fetch` does not say whether a request left the machine, so a failed write counts as one that may
 * have been applied: a reading then decides.
 */
export function fetchTransport({ url, headers, fetch }: FetchOptions): Transport {
  const base = checkedBase(url);
  return {
    url: base,
    async send(request, limitMs, signal) {
      if (signal.aborted) return noReply("interrupted", false);
      if (limitMs <= 0) return noReply("timeout", false, "no time was left");
      const wholeMs = Math.min(Math.ceil(limitMs), TIMER_MS_MAX);
      const limit = AbortSignal.timeout(wholeMs);
      // Where fetch knows `cache`, the header is its own affair; in a browser, Cache-Control of our own would
      // need a permission of the server (CORS) that few give.
      const { "cache-control": _, ...others } = request.headers;
      const knowsCache = new Request("http://localhost/", { cache: "no-store" }).cache === "no-store";
      const init: RequestInit = {
        method: request.method,
        headers: merged(headers, knowsCache ? others : request.headers),
        redirect: "manual", // followed, it could carry the token elsewhere
        cache: "no-store",
        // In Bun, a connection of its own: on one that was used before, Bun itself sends a PUT or a DELETE a
        // second time when the reply is lost, and the 412 to the second hides that the first was applied.
        // Elsewhere this is the default.
        keepalive: false,
        signal: AbortSignal.any([limit, signal]),
      };
      if (request.body !== undefined) init.body = request.body;
      try {
        const response = await fetch(base + request.path, init);
        const bytes = new Uint8Array(await response.arrayBuffer());
        // A browser shows of a redirect only that there was one.
        const status = response.type === "opaqueredirect" ? 302 : response.status;
        return completeReply(status, new Map(response.headers), bytes);
      } catch (error) {
        if (signal.aborted) return noReply("interrupted", true);
        if (limit.aborted) return noReply("timeout", true, `no complete reply within ${wholeMs} ms`);
        if (NEVER_OPENED.has(codeOf(error))) return noReply("unreachable", false, inWords(error));
        return noReply("reset", true, inWords(error));
      }
    },
  };
}

/** Names differ by case alone in a record; joined, both values would be sent. */
function merged(always: Readonly<Record<string, string>>, own: Readonly<Record<string, string>>): Headers {
  const headers = new Headers(always);
  for (const [name, value] of Object.entries(own)) headers.set(name, value);
  return headers;
}

/** In a browser a URL may be relative to the page. The value is not quoted, since it may hold credentials. */
function checkedBase(url: string): string {
  const page: string | undefined = Object(globalThis).location?.href;
  const parsed = URL.canParse(url, page) ? new URL(url, page) : undefined;
  if (parsed === undefined || !/^https?:$/.test(parsed.protocol))
    throw new TypeError("url: not an http:// or https:// URL");
  const { origin, pathname, username, password, search, hash } = parsed;
  if (username || password)
    throw new TypeError("url: holds credentials, which fetch refuses; give them as headers");
  if (hasEmptyPort(url)) throw new TypeError("url: holds no port after the colon");
  if (search || hash) throw new TypeError("url: holds a query or a fragment");
  return origin + pathname.replace(/\/+$/, "");
}

function codeOf(error: unknown): string {
  const { code, cause } = Object(error);
  const { code: ofCause, message } = Object(cause);
  return String(code ?? ofCause ?? message);
}

/** Node's `fetch` says only that it failed; why stands in the cause, as a code alone where several addresses failed. */
function inWords(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { message, code } = Object(error.cause);
  return [error.message, message || code].filter(Boolean).join(": ");
}
