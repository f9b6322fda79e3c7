/**
 * One exchange over undici, whatever becomes of it as a value. Imported at the first request only, so that
 * help and version do not wait for undici.
 */
import type { Dispatcher } from "undici/index.js";
import errors from "undici/lib/core/errors.js";
import symbols from "undici/lib/core/symbols.js";
import { completeReply, type NoCompleteReply, noReply, type Reply } from "../client/wire/reply.ts";
import type { Settings } from "../config/settings.ts";
import { proxyInWords } from "../config/values/proxy.ts";
import { brokenConnection, connectError } from "./connect-errors.ts";
import { openDispatcher } from "./dispatcher.ts";
import { ProxyRefusal } from "./proxy-refusal.ts";

export type UndiciTransport = {
  /** @param limitMs for connecting, sending and the whole reply. */
  exchange(options: Dispatcher.RequestOptions, limitMs: number, interrupted: AbortSignal): Promise<Reply>;
  close(): Promise<void>;
};

const MIB = 1024 * 1024;

/** @param bodyBytesMax of a reply, also when its content coding is undone. */
export async function openTransport(
  settings: Settings,
  origin: string,
  bodyBytesMax = 256 * MIB,
): Promise<UndiciTransport> {
  const dispatcher = await openDispatcher(settings, origin, bodyBytesMax);
  const { proxy } = settings;
  const named = settings.clientCertificate !== undefined;
  // A 407 is then the proxy's; a server behind no proxy may say 407 too.
  const forwarded = proxy.kind === "proxy" && origin.startsWith("http:");
  return {
    exchange: async (options, limitMs, interrupted) => {
      const reply = await exchange({ dispatcher, named, bodyBytesMax }, options, limitMs, interrupted);
      const judged =
        forwarded && reply.kind === "complete" && reply.status === 407 ? refusedByProxy(407) : reply;
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

/** Gathers one reply. With undici's own `request`, each exchange would cost half as much again. */
function exchange(
  { dispatcher, named, bodyBytesMax }: { dispatcher: Dispatcher; named: boolean; bodyBytesMax: number },
  options: Dispatcher.RequestOptions,
  limitMs: number,
  interrupted: AbortSignal,
): Promise<Reply> {
  if (interrupted.aborted) return Promise.resolve(noReply("interrupted", false, "interrupted"));
  if (limitMs <= 0) return Promise.resolve(noReply("timeout", false, "no time was left"));
  return new Promise((resolve) => {
    let ended = false;
    /** True once the request begins to be written: before that it can't have had an effect. */
    let sent = false;
    let abort: ((reason: Error) => void) | undefined;
    let status = 0;
    const fields = new Map<string, string>();
    const chunks: Buffer[] = [];

    const end = (reply: Reply) => {
      if (ended) return;
      ended = true;
      clearTimeout(timer);
      interrupted.removeEventListener("abort", onInterrupt);
      resolve(reply);
    };
    const giveUp = (reply: Reply) => {
      end(reply);
      abort?.(GIVEN_UP);
    };
    const failed = (error: unknown) => {
      if (error instanceof errors.ResponseExceededMaxSizeError) return end(tooLarge(bodyBytesMax));
      if (!sent || error instanceof ProxyRefusal) return end(notSent(error));
      // After the head of a reply, neither the protocol nor a certificate can be the reason.
      const origin = status === 0 ? String(options.origin) : undefined;
      end({ kind: "no-complete-reply", sent, cause: "reset", ...brokenConnection(error, origin, named) });
    };
    const onInterrupt = () => giveUp(noReply("interrupted", sent, "interrupted"));
    const timer = setTimeout(() => {
      const limit = limitMs < 1000 ? `${Math.ceil(limitMs)} ms` : `${Math.round(limitMs / 100) / 10} s`;
      const detail = `${sent ? "nothing complete came" : "no connection"} within ${limit}`;
      giveUp(noReply("timeout", sent, detail));
    }, limitMs);
    interrupted.addEventListener("abort", onInterrupt);

    const queued = {
      ...options,
      /** Called where the request waits for a connection. */
      [symbols.kQueuedAbort]: (leaveQueue: (reason: Error) => void) => {
        abort = leaveQueue;
      },
    };
    const handler: Dispatcher.DispatchHandler = {
      onRequestStart(controller) {
        if (ended) return controller.abort(GIVEN_UP);
        sent = true;
        abort = (reason) => controller.abort(reason);
      },
      onResponseStart(_, statusCode, headers) {
        if (statusCode < 200) return;
        status = statusCode;
        for (const name in headers) {
          const value = headers[name];
          if (value !== undefined) fields.set(name, Array.isArray(value) ? value.join(", ") : value);
        }
      },
      onResponseData: (_, chunk) => void chunks.push(chunk),
      onResponseEnd() {
        const [first] = chunks;
        const bytes = first !== undefined && chunks.length === 1 ? first : Buffer.concat(chunks);
        const coding = fields.get("content-encoding") ?? "";
        if (bytes.length === 0 || coding === "" || coding === "identity")
          end(completeReply(status, fields, bytes));
        else uncompressedReply(status, fields, bytes, { coding, bodyBytesMax }).then(end);
      },
      onResponseError: (_, error) => failed(error),
    };
    try {
      dispatcher.dispatch(queued, handler);
    } catch (error) {
      failed(error);
    }
  });
}

const GIVEN_UP = new Error("given up");

function notSent(error: unknown): Reply {
  if (error instanceof ProxyRefusal) return refusedByProxy(error.status);
  return { kind: "no-complete-reply", sent: false, ...connectError(error) };
}

/** Asked for again, it would be as large. */
function tooLarge(bodyBytesMax: number): Reply {
  return {
    ...noReply("unreadable", true, `the reply is larger than ${bodyBytesMax / MIB} MiB`),
    hint: "Ask for less: fewer --fields, or a smaller page with --limit, or --page-size of export.",
  };
}

async function uncompressedReply(
  status: number,
  fields: ReadonlyMap<string, string>,
  bytes: Uint8Array,
  { coding, bodyBytesMax }: { coding: string; bodyBytesMax: number },
): Promise<Reply> {
  const { uncompressed } = await import("./content-coding.ts");
  const plain = uncompressed(bytes, coding, bodyBytesMax);
  if (plain === "too large") return tooLarge(bodyBytesMax);
  return plain === undefined
    ? noReply("unreadable", true, `the body's content coding "${coding}" can't be undone`)
    : completeReply(status, fields, plain);
}
