import { connect, type Socket } from "node:net";
import { parseHead, type RawReply } from "./raw-exchange.ts";

/** A request as bytes, and what its answer's framing depends on. */
export type RawRequest = { readonly bytes: Uint8Array; readonly isHead: boolean };

type Waiting = { readonly isHead: boolean; readonly settle: (reply: RawReply | null) => void };

/**
 * One kept-alive connection that writes what it is given, byte for byte, and takes the answers apart: for
 * requests that no client library sends, many after another or pipelined.
 */
export class RawConnection {
  readonly #socket: Socket;
  #received = Buffer.alloc(0);
  #waiting: Waiting[] = [];
  #isClosed = false;

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.on("data", (chunk: Buffer) => {
      this.#received = Buffer.concat([this.#received, chunk]);
      this.#takeReplies();
    });
    // What the peer did shows in the answers that do not come.
    socket.on("error", () => this.#end());
    socket.on("close", () => this.#end());
  }

  static open(port: number): Promise<RawConnection> {
    return new Promise((resolve, reject) => {
      const socket = connect({ port, host: "127.0.0.1", noDelay: true });
      socket.once("error", reject);
      socket.once("connect", () => {
        socket.off("error", reject);
        resolve(new RawConnection(socket));
      });
    });
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** @returns the answer, or null where the connection was closed without one */
  async send(request: RawRequest): Promise<RawReply | null> {
    const [reply = null] = await this.burst([request]);
    return reply;
  }

  /**
   * Writes all requests in one go (HTTP pipelining).
   *
   * @returns their answers in order, null for those that did not come
   */
  burst(requests: readonly RawRequest[]): Promise<(RawReply | null)[]> {
    const replies = requests.map(
      ({ isHead }) =>
        new Promise<RawReply | null>((settle) => {
          if (this.#isClosed) settle(null);
          else this.#waiting.push({ isHead, settle });
        }),
    );
    if (!this.#isClosed) this.#socket.write(Buffer.concat(requests.map(({ bytes }) => bytes)));
    return Promise.all(replies);
  }

  /** Waits without writing anything. @returns what comes, or null when the connection is closed */
  async next(): Promise<RawReply | null> {
    const [reply = null] = await this.burst([{ bytes: new Uint8Array(), isHead: false }]);
    return reply;
  }

  /** Writes what was left of a request. */
  write(bytes: Uint8Array): void {
    if (!this.#isClosed) this.#socket.write(bytes);
  }

  close(): void {
    this.#isClosed = true;
    this.#socket.destroy();
  }

  #takeReplies(): void {
    for (;;) {
      const waiting = this.#waiting[0];
      if (waiting === undefined) return;
      const taken = takeReply(this.#received, waiting.isHead);
      if (taken === null) return;
      this.#received = this.#received.subarray(taken.length);
      if (taken.reply.status === 100) continue;
      this.#waiting.shift();
      waiting.settle(taken.reply);
    }
  }

  #end(): void {
    this.#isClosed = true;
    this.#socket.destroy();
    for (const { settle } of this.#waiting.splice(0)) settle(null);
  }
}

/** @param lines header lines as `Name: value`; strings are written as Latin-1, a byte a character */
export function rawRequest(
  method: string,
  path: string,
  lines: readonly string[],
  body: Uint8Array | null = null,
): RawRequest {
  const length = body === null ? [] : [`Content-Length: ${body.byteLength}`];
  const head = [`${method} ${path} HTTP/1.1`, "Host: localhost", ...lines, ...length, "", ""].join("\r\n");
  const bytes = Buffer.concat([Buffer.from(head, "latin1"), body ?? new Uint8Array()]);
  return { bytes, isHead: method === "HEAD" };
}

function takeReply(received: Buffer, isHead: boolean): { reply: RawReply; length: number } | null {
  const end = received.indexOf("\r\n\r\n");
  if (end === -1) return null;
  const { status, headers } = parseHead(received.subarray(0, end).toString("latin1"));
  const isBare = isHead || status === 204 || status === 304 || status < 200;
  const bodyLength = isBare ? 0 : Number(headers.get("content-length") ?? 0);
  const length = end + 4 + bodyLength;
  if (received.length < length) return null;
  const body = received.subarray(end + 4, length).toString("utf8");
  return { reply: { status, headers, body }, length };
}
