/**
 * Requests written byte for byte over sockets, for header lines that no client library sends and for requests
 * whose end is held back.
 */
import { connect as connectTcp, isIP, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import type { Profile } from "../target/profile.ts";
import { proxyAuthorization, proxyFor } from "../target/proxy.ts";
import { headerValue, parseReply, type Reply } from "./http-reply.ts";
import { type Outgoing, requestBytes } from "./request-bytes.ts";
import {
  behindProxy,
  describe,
  PROXY_CREDENTIALS,
  REPLY_BYTES_MAX,
  type Result,
  resultOf,
} from "./result.ts";

/** A request whose end has not left yet. */
export type Held = {
  /** Whether a connection was had at all; where not, `release` says why. */
  readonly opened: boolean;
  release(): Promise<Result>;
};

/** A connection that serves one request after the other. */
export type Connection = {
  /** The number of the exchange before the next one. */
  last: number | undefined;
  send(outgoing: Outgoing): Promise<Result>;
  close(): void;
};

/** A server that closes a connection does so at once. */
const CLOSE_PATIENCE_MS = 30;

/** As `node:tls` takes them. */
export type TlsOptions = {
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
  readonly rejectUnauthorized: boolean;
};

export class SocketTransport {
  readonly #profile: Pick<Profile, "timeoutMs" | "proxy">;
  readonly #tls: TlsOptions;
  readonly #sockets = new Set<Socket>();
  #continuedUnasked = false;

  constructor(profile: Pick<Profile, "timeoutMs" | "proxy">, tls: TlsOptions) {
    this.#profile = profile;
    this.#tls = tls;
  }

  /** Whether the service has sent 100 Continue that nobody asked for. */
  get continuedUnasked(): boolean {
    return this.#continuedUnasked;
  }

  /** Over a socket of its own; header lines leave exactly as given. */
  async send(outgoing: Outgoing): Promise<Result> {
    const url = new URL(outgoing.url);
    let sentAt = performance.now();
    try {
      const socket = await this.#open(url);
      const reply = this.#reply(socket, outgoing.method, { continueAsked: asksToContinue(outgoing) });
      sentAt = performance.now();
      socket.write(Buffer.concat(this.#bytes(url, outgoing)));
      const { result, answeredAt } = await reply;
      return behindProxy(resultOf(result, sentAt, answeredAt));
    } catch (error) {
      return behindProxy(resultOf(describe(error), sentAt));
    }
  }

  /** Request after request over one connection, opened again where the server has closed it. */
  connection(): Connection {
    let socket: Socket | undefined;
    return {
      last: undefined,
      send: async (outgoing) => {
        const url = new URL(outgoing.url);
        let sentAt = performance.now();
        try {
          for (;;) {
            const fresh = socket === undefined || socket.destroyed;
            if (socket === undefined || socket.destroyed) socket = await this.#open(url);
            const reply = this.#reply(socket, outgoing.method, {
              keep: true,
              continueAsked: asksToContinue(outgoing),
            });
            sentAt = performance.now();
            socket.write(Buffer.concat(this.#bytes(url, outgoing, true)));
            const { result, answeredAt } = await reply;
            if (typeof result !== "string") {
              if (/\bclose\b/i.test(headerValue(result.headers, "connection") ?? "")) socket.destroy();
              return behindProxy(resultOf(result, sentAt, answeredAt));
            }
            socket.destroy();
            // A server may close an idle connection whenever it likes (RFC 9112 9.3.1).
            if (fresh) return resultOf(result, sentAt, answeredAt);
          }
        } catch (error) {
          return resultOf(describe(error), sentAt);
        }
      },
      close: () => socket?.destroy(),
    };
  }

  /** Opens a connection and sends the request but for its end, so that no server answers yet. */
  async hold(outgoing: Outgoing, openMs = this.#profile.timeoutMs): Promise<Held> {
    const url = new URL(outgoing.url);
    const openedAt = performance.now();
    let socket: Socket;
    try {
      socket = await this.#open(url, openMs);
    } catch (error) {
      const failure = describe(error);
      return {
        opened: false,
        release: async () => resultOf(failure, openedAt),
      };
    }
    const [start, end] = this.#bytes(url, outgoing);
    const reply = this.#reply(socket, outgoing.method, { continueAsked: asksToContinue(outgoing) });
    const startedAt = performance.now();
    await new Promise<void>((resolve) => socket.write(start, () => resolve()));
    return {
      opened: true,
      release: async () => {
        const releasedAt = performance.now();
        socket.write(end);
        const { result, answeredAt } = await reply;
        const early = answeredAt < releasedAt;
        return resultOf(result, early ? startedAt : releasedAt, answeredAt, early);
      },
    };
  }

  async #open(url: URL, openMs = this.#profile.timeoutMs): Promise<Socket> {
    const proxy = proxyFor(this.#profile.proxy, url);
    const secure = url.protocol === "https:";
    const hop = proxy ?? url;
    const hopSecure = hop.protocol === "https:";
    const port = Number(hop.port || (hopSecure ? 443 : 80));
    const host = hop.hostname.replace(/^\[|\]$/g, "");
    const target = url.hostname.replace(/^\[|\]$/g, "");
    // No server name for an address (RFC 6066, section 3); Bun refuses to send one.
    const tls = { ...this.#tls, ...(isIP(target) === 0 ? { servername: target } : {}) };
    const hopName = isIP(host) === 0 ? { servername: host } : {};
    let socket: Socket = hopSecure
      ? connectTls({ host, port, ...this.#tls, ...hopName })
      : connectTcp({ host, port });
    await this.#ready(socket, hopSecure ? "secureConnect" : "connect", openMs);
    if (proxy !== undefined && secure) {
      const authority = `${url.hostname}:${url.port || 443}`;
      const token = proxyAuthorization(proxy);
      const lines = [`CONNECT ${authority} HTTP/1.1`, `Host: ${authority}`];
      if (token !== undefined) lines.push(`Proxy-Authorization: ${token}`);
      socket.write(`${lines.join("\r\n")}\r\n\r\n`);
      const { result } = await this.#reply(socket, "HEAD");
      if (typeof result === "string") throw new Error(`the proxy ${proxy.host} gave no answer: ${result}`);
      if (result.status === 407) throw new Error(PROXY_CREDENTIALS);
      if (result.status !== 200)
        throw new Error(`the proxy ${proxy.host} answered ${result.status} to CONNECT`);
      socket = connectTls({ socket, host: target, ...tls });
      await this.#ready(socket, "secureConnect", openMs);
    }
    return socket;
  }

  #ready(socket: Socket, event: "connect" | "secureConnect", openMs: number): Promise<void> {
    this.#sockets.add(socket);
    socket.once("close", () => this.#sockets.delete(socket));
    // One that is idle, or whose reply is complete, may fail without anybody waiting for it.
    socket.on("error", () => {});
    socket.setNoDelay(true);
    socket.setTimeout(openMs);
    return new Promise((resolve, reject) => {
      socket.once(event, () => {
        socket.setTimeout(0);
        resolve();
      });
      socket.once("error", reject);
      socket.once("timeout", () => socket.destroy(new Error("no connection in time")));
    });
  }

  #reply(
    socket: Socket,
    method: string,
    { keep = method === "HEAD", continueAsked = false }: { keep?: boolean; continueAsked?: boolean } = {},
  ): Promise<{ result: Reply | string; answeredAt: number }> {
    return new Promise((resolve) => {
      let bytes: Buffer = Buffer.alloc(0);
      let done = false;
      const finish = (result: Reply | string) => {
        if (done) return;
        done = true;
        const answeredAt = performance.now();
        clearTimeout(timer);
        for (const [event, listener] of Object.entries(listeners)) socket.off(event, listener);
        if (!keep) socket.destroy();
        resolve({ result, answeredAt });
      };
      const timer = setTimeout(
        () => finish(`no complete reply within ${this.#profile.timeoutMs} ms`),
        this.#profile.timeoutMs,
      );
      const look = (ended: boolean) => {
        const parsed = parseReply(bytes, method, ended);
        if (parsed.kind === "complete") {
          if (parsed.reply.continued === true && !continueAsked) this.#continuedUnasked = true;
          finish(parsed.reply);
        } else if (parsed.kind === "malformed") finish(parsed.why);
        else if (bytes.length > REPLY_BYTES_MAX) finish("the reply is larger than 8 MiB");
      };
      const listeners = {
        data: (chunk: Buffer) => {
          bytes = Buffer.concat([bytes, chunk]);
          look(false);
        },
        end: () => look(true),
        error: (error: Error) => finish(describe(error)),
        close: () => finish("the connection closed without a complete reply"),
      };
      for (const [event, listener] of Object.entries(listeners)) socket.on(event, listener);
    });
  }

  /** Whether the server closes after a reply without having said so (RFC 9112 9.6), which breaks a reused connection. */
  async closesUnannounced({ method, url, headers }: Outgoing): Promise<boolean> {
    const target = new URL(url);
    const socket = await this.#open(target).catch(() => undefined);
    if (socket === undefined) return false;
    socket.write(Buffer.concat(this.#bytes(target, { method, url, headers, body: undefined }, true)));
    return await new Promise<boolean>((resolve) => {
      let bytes: Buffer = Buffer.alloc(0);
      const finish = (closes: boolean) => {
        clearTimeout(patience);
        socket.destroy();
        resolve(closes);
      };
      let patience = setTimeout(() => finish(false), this.#profile.timeoutMs);
      let announced = false;
      socket.on("data", (chunk: Buffer) => {
        bytes = Buffer.concat([bytes, chunk]);
        const parsed = parseReply(bytes, method, false);
        if (parsed.kind !== "complete") return;
        announced = /\bclose\b/i.test(headerValue(parsed.reply.headers, "connection") ?? "");
        clearTimeout(patience);
        patience = setTimeout(() => finish(false), CLOSE_PATIENCE_MS);
      });
      socket.on("end", () => finish(!announced));
      socket.on("error", () => finish(!announced));
    });
  }

  #bytes(url: URL, outgoing: Outgoing, keepAlive = false): [start: Buffer, end: Buffer] {
    const proxy = url.protocol === "http:" ? proxyFor(this.#profile.proxy, url) : undefined;
    return requestBytes(outgoing, { proxy, keepAlive });
  }

  /** Ends all connections, also those that wait for a reply. */
  close(): void {
    for (const socket of this.#sockets) socket.destroy();
  }
}

function asksToContinue({ headers }: Outgoing): boolean {
  return /100-continue/i.test(headerValue(headers, "expect") ?? "");
}
