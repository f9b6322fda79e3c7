/**
 * A reverse proxy in front of a test server that does one thing wrong on purpose (faults.ts).
 * node:http, because a fault must be able to cut the connection at an exact place.
 */
import http from "node:http";
import type { AddressInfo } from "node:net";

export type Reply = { status: number; headers: Record<string, string>; body: Uint8Array };
export type Exchange = {
  method: string;
  /** With its query. */
  path: string;
  headers: http.IncomingHttpHeaders;
  /** POST, PUT, PATCH or DELETE; a search is a read. */
  isWrite: boolean;
  /** Sends the request on and reads the whole reply. */
  forward(): Promise<Reply>;
  answer(reply: Reply): void;
  /** Sends the status line, the headers and the first half of the body, then cuts the connection. */
  answerHalf(reply: Reply): void;
  /** Cuts the connection without an answer. */
  cut(): void;
};
/** Sees every exchange and ends it in its own way, or never. */
export type Fault = (exchange: Exchange) => Promise<void> | void;

export type FaultyProxy = {
  url: string;
  /** Requests that arrived at the proxy, writes among them. */
  readonly seen: number;
  readonly writesSeen: number;
  stop(): Promise<void>;
};

const HOP_BY_HOP = ["connection", "keep-alive", "transfer-encoding", "content-length", "host"];

/**
 * @param upstream may carry a base path; the proxy's own url carries the same
 * @param address another one than 127.0.0.1 where nobody may answer after `stop`: there another test may get the port
 */
export async function startFaultyProxy(
  upstream: string,
  fault: Fault,
  address = "127.0.0.1",
): Promise<FaultyProxy> {
  const { origin, pathname } = new URL(upstream);
  let seen = 0;
  let writesSeen = 0;

  const server = http.createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", async () => {
      const method = request.method ?? "GET";
      const path = request.url ?? "/";
      const isWrite = !["GET", "HEAD", "OPTIONS"].includes(method) && !path.endsWith("/search");
      seen += 1;
      if (isWrite) writesSeen += 1;
      const exchange: Exchange = {
        method,
        path,
        headers: request.headers,
        isWrite,
        forward: () => forward(`${origin}${path}`, method, request.headers, Buffer.concat(chunks)),
        answer(reply) {
          response.writeHead(reply.status, { ...reply.headers, "content-length": String(reply.body.length) });
          response.end(method === "HEAD" ? undefined : reply.body);
        },
        answerHalf(reply) {
          response.writeHead(reply.status, { ...reply.headers, "content-length": String(reply.body.length) });
          response.write(reply.body.subarray(0, reply.body.length / 2), () => request.socket.destroy());
        },
        cut: () => request.socket.destroy(),
      };
      try {
        await fault(exchange);
      } catch {
        request.socket.destroy(); // the upstream is gone; a proxy has nothing better to say
      }
    });
  });
  await new Promise<void>((resolve) => server.listen(0, address, resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://${address}:${port}${pathname === "/" ? "" : pathname}`,
    get seen() {
      return seen;
    },
    get writesSeen() {
      return writesSeen;
    },
    async stop() {
      server.closeAllConnections();
      server.close();
    },
  };
}

async function forward(
  url: string,
  method: string,
  headers: http.IncomingHttpHeaders,
  body: Buffer,
): Promise<Reply> {
  const sent = Object.entries(headers).filter(([name]) => !HOP_BY_HOP.includes(name));
  const response = await fetch(url, {
    method,
    headers: Object.fromEntries(sent) as Record<string, string>,
    redirect: "manual",
    ...(body.length > 0 ? { body: new Uint8Array(body) } : {}),
  });
  const received = [...response.headers].filter(([name]) => !HOP_BY_HOP.includes(name));
  return { status: response.status, headers: Object.fromEntries(received), body: await response.bytes() };
}
