/**
 * HTTP/1.1 over node:net, as bytes: no parser stands between a header line and the service, so that blanks,
 * two lines of one name and a body that comes late arrive as they were sent. A library would hide the very
 * faults that the self-test plants.
 */
import { createServer, type Server, type Socket } from "node:net";

/** One request. Header values stand as sent, blanks around them included; names as sent. */
export type Request = {
  method: string;
  /** As it stands in the request line. */
  target: string;
  path: string;
  query: string;
  headers: [name: string, value: string][];
  /** Resolves when the whole body is here; rejects when the peer leaves before. */
  body: () => Promise<Buffer>;
  version: "1.0" | "1.1";
  connection: Conversation;
};

/** What came before on the same connection. */
type Conversation = {
  requests: number;
  /** Paths of accepted writes. */
  wrote: Set<string>;
  /** Addresses of writes that were answered 412 on it. */
  conflicts: Set<string>;
  /** A request has waited for 100 Continue. */
  continued: boolean;
};

export type Reply = {
  status: number;
  headers: [name: string, value: string][];
  body?: string | Buffer;
  /** Sends 103 first. */
  hinted?: boolean;
  /** Written as they are instead of everything else: what no honest server sends. */
  raw?: Buffer;
  /** Ends the connection after the reply, and says so. */
  close?: boolean;
  /** Ends the connection after the reply without a word. */
  hangUp?: boolean;
};

export type Handler = (request: Request) => Promise<Reply>;

export type Listening = { port: number; connections: () => number; close: () => Promise<void> };

const HEAD_BYTES_MAX = 64 * 1024;
const BODY_BYTES_MAX = 1024 * 1024;

/** The values of one header, in order, one a line. */
export function headerLines({ headers }: Pick<Request, "headers">, name: string): string[] {
  // Asked a dozen times a request: the length tells most names apart without a copy.
  return headers
    .filter(([sent]) => sent.length === name.length && sent.toLowerCase() === name)
    .map(([, value]) => value);
}

export function setHeader(reply: Reply, name: string, value: string | undefined): Reply {
  const headers = reply.headers.filter(([each]) => each.toLowerCase() !== name.toLowerCase());
  return { ...reply, headers: value === undefined ? headers : [...headers, [name, value]] };
}

export function getHeader(reply: Reply, name: string): string | undefined {
  return reply.headers.find(([each]) => each.toLowerCase() === name.toLowerCase())?.[1];
}

class Inbox {
  #bytes: Buffer = Buffer.alloc(0);
  #ended = false;
  #wake: (() => void) | undefined;

  constructor(socket: Socket) {
    socket.on("data", (chunk: Buffer) => {
      this.#bytes = this.#bytes.length === 0 ? chunk : Buffer.concat([this.#bytes, chunk]);
      this.#wake?.();
    });
    const end = () => {
      this.#ended = true;
      this.#wake?.();
    };
    socket.on("end", end);
    socket.on("close", end);
    socket.on("error", end);
  }

  /** @returns the bytes up to and with the mark, or undefined when the peer left or sent too much. */
  async through(mark: string, bytesMax: number): Promise<Buffer | undefined> {
    for (;;) {
      const at = this.#bytes.indexOf(mark);
      if (at >= 0) return this.#take(at + mark.length);
      if (this.#ended || this.#bytes.length > bytesMax) return undefined;
      await this.#more();
    }
  }

  async exactly(length: number): Promise<Buffer | undefined> {
    while (this.#bytes.length < length) {
      if (this.#ended) return undefined;
      await this.#more();
    }
    return this.#take(length);
  }

  #take(length: number): Buffer {
    const taken = this.#bytes.subarray(0, length);
    this.#bytes = this.#bytes.subarray(length);
    return taken;
  }

  #more(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = () => {
        this.#wake = undefined;
        resolve();
      };
    });
  }
}

function parseHead(head: Buffer, connection: Conversation): Omit<Request, "body"> | undefined {
  const [first = "", ...lines] = head.toString("latin1").split("\r\n").slice(0, -2);
  const [, method, target, version] = /^([A-Z]+) (\S+) HTTP\/(1\.[01])$/.exec(first) ?? [];
  if (method === undefined || target === undefined) return undefined;
  const headers: [string, string][] = [];
  for (const line of lines) {
    const colon = line.indexOf(":");
    if (colon < 1) return undefined;
    headers.push([line.slice(0, colon), line.slice(colon + 1)]);
  }
  const [path = "", query = ""] = target.replace(/^http:\/\/[^/]+/, "").split("?", 2);
  return { method, target, path, query, headers, version: version === "1.0" ? "1.0" : "1.1", connection };
}

async function readChunks(inbox: Inbox): Promise<Buffer | undefined> {
  const chunks: Buffer[] = [];
  for (;;) {
    const size = Number.parseInt((await inbox.through("\r\n", 100))?.toString("latin1") ?? "", 16);
    if (!(size >= 0 && size <= BODY_BYTES_MAX)) return undefined;
    const chunk = await inbox.exactly(size + 2);
    if (chunk === undefined) return undefined;
    if (size === 0) return Buffer.concat(chunks);
    chunks.push(chunk.subarray(0, size));
  }
}

function replyBytes(reply: Reply, method: string, closing: boolean): Buffer {
  if (reply.raw !== undefined) return reply.raw;
  const content = Buffer.from(reply.body ?? "");
  const bodiless = reply.status === 204 || reply.status === 304;
  const chunked = getHeader(reply, "transfer-encoding") === "chunked";
  const lines = [`HTTP/1.1 ${reply.status} .`, ...reply.headers.map(([name, value]) => `${name}: ${value}`)];
  if (!bodiless && !chunked) lines.push(`Content-Length: ${content.length}`);
  if (closing) lines.push("Connection: close");
  const head = Buffer.from(`${lines.join("\r\n")}\r\n\r\n`, "latin1");
  if (bodiless || method === "HEAD") return head;
  if (!chunked) return Buffer.concat([head, content]);
  const chunk = content.length === 0 ? "" : `${content.length.toString(16)}\r\n`;
  return Buffer.concat([
    head,
    Buffer.from(chunk),
    content,
    Buffer.from(`${chunk === "" ? "" : "\r\n"}0\r\n\r\n`),
  ]);
}

async function converse(socket: Socket, handler: Handler): Promise<void> {
  const inbox = new Inbox(socket);
  const connection: Conversation = { requests: 0, wrote: new Set(), conflicts: new Set(), continued: false };
  for (;;) {
    const bytes = await inbox.through("\r\n\r\n", HEAD_BYTES_MAX);
    if (bytes === undefined) break;
    const head = parseHead(bytes, connection);
    if (head === undefined) {
      socket.write("HTTP/1.1 400 .\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
      break;
    }
    const of = (name: string) => headerLines(head, name).join(",").trim();
    if (/100-continue/i.test(of("expect"))) socket.write("HTTP/1.1 100 Continue\r\n\r\n");
    // Read at once, awaited where it is needed: the next request must not begin inside this one's body.
    const reading = /chunked/i.test(of("transfer-encoding"))
      ? readChunks(inbox)
      : inbox.exactly(Math.min(Number(of("content-length") || 0), BODY_BYTES_MAX));
    const body = reading.then((content) => {
      if (content === undefined) throw new Error("the peer left before its body was whole");
      return content;
    });
    body.catch(() => undefined); // nobody may have asked for it
    const reply = await handler({ ...head, body: () => body }).catch(
      (): Reply => ({ status: 500, headers: [], body: "" }),
    );
    connection.requests += 1;
    connection.continued ||= of("expect") !== "";
    if (reply.status < 300 && head.method !== "GET") connection.wrote.add(head.path);
    if (reply.status === 412) connection.conflicts.add(head.path);
    const complete = (await reading) !== undefined;
    if (!complete || socket.destroyed) break;
    const closing = reply.close === true || /\bclose\b/i.test(of("connection"));
    if (reply.hinted === true) socket.write("HTTP/1.1 103 .\r\nLink: </style.css>; rel=preload\r\n\r\n");
    socket.write(replyBytes(reply, head.method, closing));
    if (closing || reply.hangUp === true) break;
  }
  socket.end();
}

/** Accepts connections on a loopback port, each with what `onConnection` does. */
export function listenRaw(onConnection: (socket: Socket) => void, port = 0): Promise<Listening> {
  const open = new Set<Socket>();
  let accepted = 0;
  const server: Server = createServer({ noDelay: true, allowHalfOpen: true }, (socket) => {
    accepted += 1;
    open.add(socket);
    socket.on("error", () => undefined); // a reset by the peer is the peer's business
    socket.on("close", () => open.delete(socket));
    onConnection(socket);
  });
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, "127.0.0.1", () => {
      const address = server.address();
      if (address === null || typeof address === "string") throw new Error("a TCP server has a port");
      resolve({
        port: address.port,
        connections: () => accepted,
        close: () =>
          new Promise((closed) => {
            server.close(() => closed());
            for (const socket of open) socket.destroy();
          }),
      });
    });
  });
}

export function listen(handler: Handler, port = 0): Promise<Listening> {
  return listenRaw((socket) => void converse(socket, handler), port);
}
