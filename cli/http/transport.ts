/**
 * One exchange over undici, whatever becomes of it as a value. Imported at the first request only, so that
 * help and version do not wait for undici.
 */
import { brotliDecompressSync, gunzipSync, inflateSync } from "node:zlib";
import type { Dispatcher } from "undici/index.js";
import request from "undici/lib/api/api-request.js";
import { completeReply, type NoCompleteReply, noReply, type Reply } from "../client/wire/reply.ts";
import { proxyInWords } from "../config/proxy.ts";
import type { Settings } from "../config/settings.ts";
import { brokenConnection, connectError } from "./connect-errors.ts";
import { BODY_BYTES_MAX, isProxyRefusal, openDispatcher } from "./dispatcher.ts";
import { ProxyRefusal } from "./proxy-refusal.ts";

export type UndiciTransport = {
  /** @param limitMs for connecting, sending and the whole reply. */
  exchange(options: Dispatcher.RequestOptions, limitMs: number, interrupted: AbortSignal): Promise<Reply>;
  close(): Promise<void>;
};

export async function openTransport(settings: Settings, origin: string): Promise<UndiciTransport> {
  const dispatcher = await openDispatcher(settings, origin);
  const { proxy } = settings;
  const named = settings.clientCertificate !== undefined;
  return {
    exchange: async (options, limitMs, interrupted) => {
      const reply = await exchange({ dispatcher, named }, options, limitMs, interrupted);
      const judged =
        reply.kind === "complete" && isProxyRefusal(reply.status, proxy, origin)
          ? refusedByProxy(reply.status)
          : reply;
      return judged.kind !== "complete" && judged.cause === "unreachable" && proxy.kind === "proxy"
        ? { ...judged, detail: `${judged.detail}; ${proxyInWords(proxy)}` }
        : judged;
    },
    // Not close(): that would wait for requests which were given up.
    close: () => dispatcher.destroy(),
  };
}

/** Nothing reached the server. */
function refusedByProxy(status: number): NoCompleteReply {
  const none = (detail: string) => noReply("unreachable", false, detail);
  return status === 407
    ? {
        ...none("the proxy asks for credentials (407)"),
        hint: "Give them in the proxy's URL: http://user:password@host:port, as https_proxy or in the profile.",
      }
    : {
        ...none(`the proxy refuses to connect to the server (${status})`),
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
  { dispatcher, named }: { dispatcher: Dispatcher; named: boolean },
  options: Dispatcher.RequestOptions,
  limitMs: number,
  interrupted: AbortSignal,
): Promise<Reply> {
  let sent = false;
  const none = (cause: NoCompleteReply["cause"], detail: string) => noReply(cause, sent, detail);
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
    const response = await request.call(observed, {
      ...options,
      signal: AbortSignal.any([limit.signal, interrupted]),
    });
    const fields = new Map<string, string>();
    for (const [name, value] of Object.entries(response.headers)) {
      if (value !== undefined)
        fields.set(name.toLowerCase(), Array.isArray(value) ? value.join(", ") : value);
    }
    const bytes = new Uint8Array(await response.body.arrayBuffer());
    const coding = fields.get("content-encoding");
    const plain = uncompressed(bytes, coding);
    if (plain === undefined)
      return none("unreadable", `the body's content coding "${coding}" can't be undone`);
    return completeReply(response.statusCode, fields, plain);
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
    return sent
      ? {
          kind: "no-complete-reply",
          sent,
          cause: "reset",
          ...brokenConnection(error, String(options.origin), named),
        }
      : { kind: "no-complete-reply", sent, ...connectError(error) };
  } finally {
    clearTimeout(timer);
  }
}

/** Undefined where that is impossible. */
function uncompressed(bytes: Uint8Array, coding: string | undefined): Uint8Array | undefined {
  const limit = { maxOutputLength: BODY_BYTES_MAX };
  if (bytes.length === 0) return bytes;
  try {
    switch (coding) {
      case undefined:
      case "":
      case "identity":
        return bytes;
      case "gzip":
      case "x-gzip":
        return gunzipSync(bytes, limit);
      case "br":
        return brotliDecompressSync(bytes, limit);
      case "deflate":
        return inflateSync(bytes, limit);
      default:
        return undefined;
    }
  } catch {
    return undefined;
  }
}
