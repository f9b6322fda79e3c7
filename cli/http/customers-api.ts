/**
 * HTTP to one deployment. Whatever comes of a request is a value: a complete reply, or that none came and
 * whether anything was sent. Only a bug throws.
 */
import type { Dispatcher } from "undici/index.js";
import packageJson from "../../package.json" with { type: "json" };
import type { Deadline } from "../client/deadline.ts";
import type { ApiRequest } from "../client/request.ts";
import type { Settings } from "../config/settings.ts";
import { UsageError } from "../outcome/failure.ts";
import type { Messages } from "../output/messages.ts";
import type { Transport } from "./transport.ts";

export type CompleteReply = {
  kind: "complete";
  status: number;
  /** Header fields by lower-case name; several lines of one name are joined by ", " (RFC 9110 §5.3). */
  fields: ReadonlyMap<string, string>;
  /** The body as UTF-8. */
  text: string;
};

export type NoCompleteReply = {
  kind: "no-complete-reply";
  /** False: no byte of this request left, so it can't have been applied. */
  sent: boolean;
  cause: NoReplyCause;
  /** What happened, in words that continue "no complete reply: …". */
  detail: string;
  /** What would mend it, where that is known better than by the cause alone. */
  hint?: string;
};

export type NoReplyCause = "unreachable" | "tls" | "timeout" | "reset" | "interrupted" | "unreadable";

export type Reply = CompleteReply | NoCompleteReply;

export type CustomersApi = {
  /** The base URL without a trailing slash, for messages. Throws a UsageError where none is set. */
  readonly url: string;
  /** @param withinMs a limit for this request alone, below what the deadline leaves. */
  send(request: ApiRequest, deadline: Deadline, withinMs?: number): Promise<Reply>;
  close(): Promise<void>;
};

/** In this form the service can count refusals by client version. */
const USER_AGENT = `customers-cli/${packageJson.version}`;

export function openCustomersApi(settings: Settings, messages: Pick<Messages, "verbose">): CustomersApi {
  let opening: Promise<Transport> | undefined;
  let exchanges = 0;
  const base = (): string => {
    if (settings.url !== undefined) return settings.url;
    throw new UsageError(
      "no server is set",
      "Give --url URL, set CUSTOMERS_URL, or store it once with: customers login --url URL",
    );
  };
  return {
    get url() {
      return base();
    },
    async send(request, deadline, withinMs) {
      const { origin, pathname } = new URL(base());
      // undici is loaded at the first request, so that help and version don't wait for it.
      opening ??= import("./transport.ts").then(({ openTransport }) => openTransport(settings, origin));
      const transport = await opening;
      exchanges += 1;
      const number = exchanges; // bulk commands have several under way
      const headers = headersOf(settings, request);
      const path = pathname.replace(/\/$/, "") + request.path;
      for (const line of describeRequest(settings, request, origin + path, headers)) {
        messages.verbose(`[${number}] > ${line}`);
      }
      const limitMs = Math.min(withinMs ?? Number.POSITIVE_INFINITY, deadline.remainingMs());
      const options: Dispatcher.RequestOptions = { origin, path, method: request.method, headers };
      if (request.body !== undefined) options.body = request.body;
      const reply = await transport.exchange(options, limitMs, deadline.interrupted);
      for (const line of describeReply(reply)) messages.verbose(`[${number}] < ${line}`);
      return reply;
    },
    close: async () => (await opening)?.close(),
  };
}

/** The command's own headers first; what the operator set is added under its own spelling. */
function headersOf(settings: Settings, request: ApiRequest): Record<string, string> {
  const headers: Record<string, string> = { "user-agent": USER_AGENT, ...request.headers };
  for (const { name, value } of settings.headers) {
    delete headers[name.toLowerCase()];
    headers[name] = value;
  }
  return headers;
}

function describeRequest(
  settings: Settings,
  request: ApiRequest,
  url: string,
  headers: Readonly<Record<string, string>>,
): string[] {
  const masked = new Set(settings.headers.filter(({ secret }) => secret).map(({ name }) => name));
  const lines = Object.entries(headers).map(
    ([name, value]) => `${name}: ${masked.has(name) ? "***" : value}`,
  );
  return [`${request.method} ${url}`, ...lines, ...(request.body === undefined ? [] : ["", request.body])];
}

function describeReply(reply: Reply): string[] {
  if (reply.kind === "no-complete-reply") return [`no complete reply: ${reply.detail}`];
  const shown = [...reply.fields].map(([name, value]) => `${name}: ${value}`);
  return [String(reply.status), ...shown, ...(reply.text === "" ? [] : ["", reply.text])];
}
