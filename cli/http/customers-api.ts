/** The client's transport for one deployment, as the settings say: base URL, headers, verbose output. */
import type { Dispatcher } from "undici/index.js";
import type { Reply, Transport } from "../client/wire/reply.ts";
import type { ApiRequest } from "../client/wire/request.ts";
import type { Settings } from "../config/settings.ts";
import { UsageError } from "../outcome/failure.ts";
import { type TokenEnd, tokenEndOf } from "../outcome/token-end.ts";
import { VERSION } from "../version.ts";
import type { UndiciTransport } from "./transport.ts";

export type CustomersApi = Transport & {
  /** What the replies said of the token's end; once, so that one place reports it. */
  takeTokenEnd(): TokenEnd | undefined;
  close(): Promise<void>;
};

/** In this form the service can count refusals by client version. */
const USER_AGENT = `customers-cli/${VERSION}`;

export function openCustomersApi(
  settings: Settings,
  messages: { verbose(line: string): void },
): CustomersApi {
  let opening: Promise<UndiciTransport> | undefined;
  let deployment: URL | undefined;
  let exchanges = 0;
  let tokenEnd: TokenEnd | undefined;
  const base = (): string => {
    if (settings.url !== undefined) return settings.url;
    throw new UsageError(
      "no server is set",
      "Give --url URL, set CUSTOMERS_URL, or store it once with: customers login --url URL",
    );
  };
  return {
    /** Throws a UsageError where none is set. */
    get url() {
      return base();
    },
    async send(request, limitMs, signal) {
      deployment ??= new URL(base());
      const { origin, pathname } = deployment;
      // undici is loaded at the first request, so that help and version don't wait for it.
      opening ??= import("./transport.ts").then(({ openTransport }) => openTransport(settings, origin));
      const transport = await opening;
      exchanges += 1;
      const number = exchanges; // bulk commands have several under way
      const headers = headersOf(settings, request);
      const path = pathname.replace(/\/$/, "") + request.path;
      if (settings.verbose) {
        for (const line of describeRequest(settings, request, origin + path, headers))
          messages.verbose(`[${number}] > ${line}`);
      }
      const options: Dispatcher.RequestOptions = { origin, path, method: request.method, headers };
      if (request.body !== undefined) options.body = request.body;
      const reply = await transport.exchange(options, limitMs, signal);
      if (settings.verbose) {
        for (const line of describeReply(reply)) messages.verbose(`[${number}] < ${line}`);
      }
      if (reply.kind === "complete") tokenEnd = tokenEndOf(reply.fields, Date.now()) ?? tokenEnd;
      return reply;
    },
    takeTokenEnd() {
      const taken = tokenEnd;
      tokenEnd = undefined;
      return taken;
    },
    close: async () => (await opening)?.close(),
  };
}

/** The command's own headers first; what the operator set is added under its own spelling. */
function headersOf(settings: Settings, request: ApiRequest): Record<string, string> {
  const headers: Record<string, string> = { "user-agent": USER_AGENT, ...request.headers };
  for (const { name, value } of settings.headers) {
    const own = name.toLowerCase();
    if (own in headers) delete headers[own]; // deleting even what is not there makes the object slow
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
