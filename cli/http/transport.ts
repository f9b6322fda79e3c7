/**
 * One exchange over undici, whatever becomes of it as a value. Imported at the first request only, so that help and
 * version do not wait for undici.
 */
import { brotliDecompressSync, gunzipSync, inflateSync } from "node:zlib";
import type { Dispatcher } from "undici/index.js";
import type { NoCompleteReply, Reply } from "../client/reply.ts";
import { proxyInWords } from "../config/proxy.ts";
import type { Settings } from "../config/settings.ts";
import { BODY_BYTES_MAX, isProxyRefusal, openDispatcher, ProxyRefusal } from "./dispatcher.ts";

export type Transport = {
  /** @param limitMs for connecting, sending and the whole reply. */
  exchange(options: Dispatcher.RequestOptions, limitMs: number, interrupted: AbortSignal): Promise<Reply>;
  close(): Promise<void>;
};

export function openTransport(settings: Settings, origin: string): Transport {
  const dispatcher = openDispatcher(settings, origin);
  const { proxy } = settings;
  return {
    exchange: async (options, limitMs, interrupted) => {
      const reply = await exchange(dispatcher, options, limitMs, interrupted);
      if (reply.kind === "complete") {
        return isProxyRefusal(reply.status, proxy, origin) ? refusedByProxy(reply.status) : reply;
      }
      return reply.cause === "unreachable" && proxy.kind === "proxy"
        ? { ...reply, detail: `${reply.detail}; ${proxyInWords(proxy)}` }
        : reply;
    },
    // Not close(): that would wait for requests which were given up.
    close: () => dispatcher.destroy(),
  };
}

/** Nothing reached the server. */
function refusedByProxy(status: number): NoCompleteReply {
  const none = { kind: "no-complete-reply", sent: false, cause: "unreachable" } as const;
  return status === 407
    ? {
        ...none,
        detail: "the proxy asks for credentials (407)",
        hint: "Give them in the proxy's URL: http://user:password@host:port, as https_proxy or in the profile.",
      }
    : {
        ...none,
        detail: `the proxy refuses to connect to the server (${status})`,
        hint: "Ask those who run the proxy, or exempt the server with no_proxy.",
      };
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
    if (error instanceof ProxyRefusal) return refusedByProxy(error.status);
    const { message, code } = innermost(error);
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
