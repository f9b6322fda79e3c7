/**
 * Two ways onto the wire. `send` is the real undici: what an ordinary client does. `sockets` write the bytes
 * themselves. A failure to get a complete reply is a value, not an exception.
 */
import type { Dispatcher } from "undici/index.js";
import type { Profile } from "../target/profile.ts";
import { proxyAuthorization, proxyFor } from "../target/proxy.ts";
import type { Outgoing } from "./request-bytes.ts";
import { behindProxy, describe, REPLY_BYTES_MAX, type Result, resultOf } from "./result.ts";
import { SocketTransport, type TlsOptions } from "./socket-transport.ts";

export class Transport {
  readonly #profile: Pick<Profile, "timeoutMs" | "tls" | "proxy">;
  readonly #tls: TlsOptions;
  /** For what undici does not send, and for a service that undici does not understand. */
  readonly sockets: SocketTransport;
  /** By proxy; "" where there is none. */
  readonly #dispatchers = new Map<string, Promise<Dispatcher>>();
  /** Whether undici has taken 100 Continue that nobody asked for as the end of the connection. */
  #confused = false;
  #keepAlive = true;

  constructor(profile: Pick<Profile, "timeoutMs" | "tls" | "proxy">) {
    this.#profile = profile;
    this.#tls = {
      rejectUnauthorized: !profile.tls.insecure,
      ...(profile.tls.ca === undefined ? {} : { ca: profile.tls.ca }),
      ...(profile.tls.cert === undefined || profile.tls.key === undefined
        ? {}
        : { cert: profile.tls.cert, key: profile.tls.key }),
    };
    this.sockets = new SocketTransport(profile, this.#tls);
  }

  #dispatcherFor(url: URL): Promise<Dispatcher> {
    const proxy = proxyFor(this.#profile.proxy, url);
    const key = proxy?.href ?? "";
    const dispatcher = this.#dispatchers.get(key) ?? this.#makeDispatcher(proxy);
    this.#dispatchers.set(key, dispatcher);
    return dispatcher;
  }

  async #makeDispatcher(proxy: URL | undefined): Promise<Dispatcher> {
    const { timeoutMs } = this.#profile;
    const options = {
      allowH2: false,
      pipelining: this.#keepAlive ? 1 : 0,
      connect: { ...this.#tls, timeout: timeoutMs },
      headersTimeout: timeoutMs,
      bodyTimeout: timeoutMs,
    };
    // Loaded for the first request: half of the commands send none. The whole of undici is there for a proxy alone.
    if (proxy === undefined) {
      const { default: Agent } = await import("undici/lib/dispatcher/agent.js");
      return new Agent(options);
    }
    const { ProxyAgent } = await import("undici/index.js");
    const token = proxyAuthorization(proxy);
    return new ProxyAgent({
      ...options,
      uri: proxy.origin,
      requestTls: { ...this.#tls },
      proxyTls: { ...this.#tls },
      ...(token === undefined ? {} : { token }),
    });
  }

  /** Whether everything goes over sockets from now on, because the service sends 100 Continue unasked. */
  get socketOnly(): boolean {
    return this.#confused || this.sockets.continuedUnasked;
  }

  /** A server that closes without saying so would break a reused connection: use each for one request. */
  async withoutKeepAlive(): Promise<void> {
    if (!this.#keepAlive) return;
    this.#keepAlive = false;
    const former = [...this.#dispatchers.values()];
    this.#dispatchers.clear();
    await Promise.all(former.map(async (dispatcher) => (await dispatcher).close()));
  }

  /** Over undici, as long as it understands the service. */
  async send(outgoing: Outgoing): Promise<Result> {
    if (this.socketOnly) return await this.sockets.send(outgoing);
    const result = await this.#dispatch(outgoing);
    if (result.reply !== null || !UNASKED_CONTINUE.test(result.failure ?? "")) return behindProxy(result);
    this.#confused = true;
    // A write may have been applied although its answer was lost, so it is not sent twice.
    return outgoing.method === "GET" ? await this.sockets.send(outgoing) : result;
  }

  async #dispatch({ method, url, headers, body }: Outgoing): Promise<Result> {
    const address = new URL(url);
    const dispatcher = await this.#dispatcherFor(address);
    const { origin, pathname, search } = address;
    const sentAt = performance.now();
    return await new Promise((resolve) => {
      let status = 0;
      let replyHeaders: [string, string][] = [];
      const chunks: Buffer[] = [];
      let length = 0;
      dispatcher.dispatch(
        {
          origin,
          path: pathname + search,
          method: method as Dispatcher.HttpMethod,
          headers: headers.flat(),
          body: body ?? null,
        },
        {
          onRequestStart() {},
          onResponseStart(controller, code) {
            status = code;
            replyHeaders = pairs(controller.rawHeaders);
          },
          onResponseData(controller, chunk) {
            chunks.push(chunk);
            length += chunk.length;
            if (length > REPLY_BYTES_MAX) controller.abort(new Error("the reply is larger than 8 MiB"));
          },
          onResponseEnd() {
            resolve(resultOf({ status, headers: replyHeaders, body: Buffer.concat(chunks) }, sentAt));
          },
          onResponseError(_controller, error) {
            resolve(resultOf(describe(error), sentAt));
          },
        },
      );
    });
  }

  async close(): Promise<void> {
    this.sockets.close();
    await Promise.all(
      [...this.#dispatchers.values()].map(async (dispatcher) => (await dispatcher).destroy()),
    );
  }
}

/** What undici says of 100 Continue that nobody asked for (RFC 9110 15.2 lets a client expect any 1xx). */
const UNASKED_CONTINUE = /^bad response\b/;

function pairs(raw: unknown): [string, string][] {
  const list = Array.isArray(raw) ? raw : [];
  // Blanks around a field value are no part of it (RFC 9112 5).
  const text = (value: unknown) =>
    (Buffer.isBuffer(value) ? value.toString("latin1") : String(value)).replace(/^[ \t]+|[ \t]+$/g, "");
  return Array.from({ length: list.length / 2 }, (_, i) => [text(list[2 * i]), text(list[2 * i + 1])]);
}
