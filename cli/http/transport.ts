/**
 * undici as the client needs it: proxy, private CA, limits, and what became of a request as a value.
 * Imported at the first request only. The path with /index.js matters: under Bun a bare 'undici' is a
 * built-in shim that ignores time-outs, proxies and dispatchers.
 */
import { brotliDecompressSync, gunzipSync, inflateSync } from "node:zlib";
import { Agent, type Dispatcher, EnvHttpProxyAgent, ProxyAgent } from "undici/index.js";
import type { NoCompleteReply, Reply } from "../client/reply.ts";
import type { Settings } from "../config/settings.ts";
import { proxyInWords } from "./proxy-setting.ts";

export type Transport = {
  /** @param limitMs for connecting, sending and the whole reply. */
  exchange(options: Dispatcher.RequestOptions, limitMs: number, interrupted: AbortSignal): Promise<Reply>;
  close(): Promise<void>;
};

const BODY_BYTES_MAX = 256 * 1024 * 1024;

export function openTransport(settings: Settings, origin: string): Transport {
  const dispatcher = openDispatcher(settings, origin);
  return {
    exchange: async (options, limitMs, interrupted) => {
      const reply = await exchange(dispatcher, options, limitMs, interrupted);
      const way =
        local(origin) && settings.proxy.kind !== "explicit"
          ? undefined
          : proxyInWords(settings.proxy, origin);
      return reply.kind === "no-complete-reply" && reply.cause === "unreachable" && way !== undefined
        ? { ...reply, detail: `${reply.detail}; ${way}` }
        : reply;
    },
    // Not close(): that would wait for requests which were given up.
    close: () => dispatcher.destroy(),
  };
}

function openDispatcher(settings: Settings, origin: string): Dispatcher {
  const tls = {
    ...(settings.cacert === undefined ? {} : { ca: settings.cacert }),
    // Said outright, so that NODE_TLS_REJECT_UNAUTHORIZED=0 somewhere in an environment can't switch it off.
    rejectUnauthorized: !settings.insecure,
  };
  // The limits in time are those of exchange(); undici's own would cut a longer --timeout short.
  const limits = { headersTimeout: 0, bodyTimeout: 0, maxResponseSize: BODY_BYTES_MAX, allowH2: false };
  // HTTP/1.1 alone: undici would take HTTP/2 from a server that offers it, over Bun's node:http2, which none of
  // the proofs here cover.
  const connect = { ...tls, timeout: 0, allowH2: false };
  const { proxy } = settings;
  if (proxy.kind === "explicit") {
    return new ProxyAgent({ ...limits, uri: proxy.url, requestTls: connect, proxyTls: connect });
  }
  if (local(origin) || (proxy.http === "" && proxy.https === "")) return new Agent({ ...limits, connect });
  return new EnvHttpProxyAgent({
    ...limits,
    connect,
    requestTls: connect,
    proxyTls: connect,
    httpProxy: proxy.http,
    httpsProxy: proxy.https,
    noProxy: proxy.no,
  });
}

/** What runs on this machine is not reached through a proxy, unless the operator names one. */
function local(origin: string): boolean {
  return /^(?:localhost|127\.[\d.]+|\[::1\])$/.test(new URL(origin).hostname);
}

/** Notes when a request begins to be written: before that it can't have had an effect. */
function observeStart(handler: Dispatcher.DispatchHandler, started: () => void): Dispatcher.DispatchHandler {
  const onRequestStart = handler.onRequestStart;
  handler.onRequestStart = (controller, context) => {
    started();
    onRequestStart?.call(handler, controller, context);
  };
  return handler;
}

async function exchange(
  dispatcher: Dispatcher,
  options: Dispatcher.RequestOptions,
  limitMs: number,
  interrupted: AbortSignal,
): Promise<Reply> {
  let sent = false;
  const none = (cause: NoCompleteReply["cause"], detail: string): NoCompleteReply => ({
    kind: "no-complete-reply",
    sent,
    cause,
    detail,
  });
  if (interrupted.aborted) return none("interrupted", "interrupted");
  if (limitMs <= 0) return none("timeout", "no time was left");
  const limit = new AbortController();
  const timer = setTimeout(() => limit.abort(), limitMs);
  const observed = dispatcher.compose(
    (dispatch) => (dispatchOptions, handler) =>
      dispatch(
        dispatchOptions,
        observeStart(handler, () => {
          sent = true;
        }),
      ),
  );
  try {
    const response = await observed.request({
      ...options,
      signal: AbortSignal.any([limit.signal, interrupted]),
    });
    const fields = new Map<string, string>();
    for (const [name, value] of Object.entries(response.headers)) {
      if (value !== undefined)
        fields.set(name.toLowerCase(), Array.isArray(value) ? value.join(", ") : value);
    }
    const bytes = new Uint8Array(await response.body.arrayBuffer());
    const text = decoded(bytes, fields.get("content-encoding"));
    if (text === undefined)
      return none(
        "unreadable",
        `the body's content coding "${fields.get("content-encoding")}" can't be undone`,
      );
    return { kind: "complete", status: response.statusCode, fields, text };
  } catch (error) {
    if (interrupted.aborted) return none("interrupted", "interrupted");
    if (limit.signal.aborted) {
      const seconds = Math.round(limitMs / 100) / 10;
      return none(
        "timeout",
        sent ? `nothing complete came within ${seconds} s` : `no connection within ${seconds} s`,
      );
    }
    const { message, code } = innermost(error);
    if (/\b407\b/.test(message)) {
      sent = false; // the proxy refused to pass it on
      return none("unreachable", "the proxy asks for credentials (407)");
    }
    if (!sent) {
      const hint = CONNECT_HINTS[code];
      const reply = none(TLS_ERROR.test(code) ? "tls" : "unreachable", connectDetail(code, message));
      return hint === undefined ? reply : { ...reply, hint };
    }
    return none("reset", `the connection broke off (${code === "" ? message : code})`);
  } finally {
    clearTimeout(timer);
  }
}

/** Asked for identity; a proxy that compresses anyway is undone here. Undefined where that is impossible. */
function decoded(bytes: Uint8Array, coding: string | undefined): string | undefined {
  const limit = { maxOutputLength: BODY_BYTES_MAX };
  try {
    const plain =
      coding === undefined || coding === "" || coding === "identity" || bytes.length === 0
        ? bytes
        : coding === "gzip" || coding === "x-gzip"
          ? gunzipSync(bytes, limit)
          : coding === "br"
            ? brotliDecompressSync(bytes, limit)
            : coding === "deflate"
              ? inflateSync(bytes, limit)
              : undefined;
    return plain === undefined ? undefined : new TextDecoder().decode(plain);
  } catch {
    return undefined;
  }
}

const TLS_ERROR = /CERT|TLS|SSL|SIGNATURE|ISSUER|EPROTO/;

const CONNECT_DETAILS: Record<string, string> = {
  ECONNREFUSED: "the connection was refused",
  ENOTFOUND: "the host name is not known",
  EAI_AGAIN: "the host name could not be looked up",
  EHOSTUNREACH: "there is no route to the host",
  ENETUNREACH: "there is no route to the network",
  DEPTH_ZERO_SELF_SIGNED_CERT: "the server's certificate is self-signed",
  SELF_SIGNED_CERT_IN_CHAIN: "the server's certificate is signed by an authority that is not trusted here",
  UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    "the server's certificate is signed by an authority that is not trusted here",
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    "the server's certificate is signed by an authority that is not trusted here",
  CERT_HAS_EXPIRED: "the server's certificate has expired",
  ERR_TLS_CERT_ALTNAME_INVALID: "the server's certificate is for another host name",
};

/** Where the authority's certificate is not what is missing. */
const CONNECT_HINTS: Record<string, string> = {
  ERR_TLS_CERT_ALTNAME_INVALID:
    "Give the server as --url by a name that its certificate has, or have the certificate made for this one.",
  CERT_HAS_EXPIRED: "Those who run the server must renew it; a clock that is wrong here looks the same.",
  CERT_NOT_YET_VALID: "A clock that is wrong here looks like this: compare it with the server's.",
};

function connectDetail(code: string, message: string): string {
  const words = CONNECT_DETAILS[code];
  return words === undefined ? message || code : `${words} (${code})`;
}

/** undici and Bun wrap errors, and Happy Eyeballs gathers them: the innermost first one says what happened. */
function innermost(error: unknown): { message: string; code: string } {
  let current = error as { message?: string; code?: string; cause?: unknown; errors?: unknown[] };
  for (let depth = 0; depth < 8; depth += 1) {
    const next = (current.errors?.[0] ?? current.cause) as typeof current | undefined;
    if (next === undefined || typeof next !== "object" || next === null) break;
    current = next;
  }
  return { message: current.message ?? String(error), code: String(current.code ?? "") };
}
