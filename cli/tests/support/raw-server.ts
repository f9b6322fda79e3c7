/** A server that answers with the bytes that a test gives it, whatever HTTP says of them. */
import net from "node:net";

export type RawRequest = {
  method: string;
  path: string;
  headers: Readonly<Record<string, string>>;
  body: string;
};
/** Written as they are; `end` then closes the connection. Undefined: it is cut without an answer. */
export type RawReply = { bytes: string; end?: boolean } | undefined;

export type RawServer = { url: string; stop(): void };

/** Starts on a free port of the loopback interface; requests of one connection are answered in order. */
export async function startRawServer(answer: (request: RawRequest) => RawReply): Promise<RawServer> {
  const sockets = new Set<net.Socket>();
  const server = net.createServer((socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
    socket.on("error", () => {});
    let received = "";
    socket.on("data", (data) => {
      received += data.toString("latin1");
      for (let next = takeRequest(received); next !== undefined; next = takeRequest(received)) {
        received = next.rest;
        const reply = answer(next.request);
        if (reply === undefined) return void socket.destroy();
        socket.write(reply.bytes, "latin1");
        if (reply.end) socket.end();
      }
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as net.AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    stop() {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}

/** A whole response, with its length. */
export function response(status: number, headers: readonly string[] = [], body = ""): string {
  const framed = status === 204 || status === 304 ? headers : [...headers, `Content-Length: ${body.length}`];
  return [`HTTP/1.1 ${status} -`, ...framed, "", body].join("\r\n");
}

/** An interim response that a client must pass over, also where it asked for none (RFC 9110 §15.2). */
export const CONTINUE = "HTTP/1.1 100 Continue\r\n\r\n";
export const INTERIM = [
  CONTINUE,
  'HTTP/1.1 103 -\r\nLink: </x>\r\nETag: "9"\r\n\r\n',
  "HTTP/1.1 102 Processing\r\n\r\n",
  "HTTP/1.1 100 Continue\r\nContent-Length: 5\r\n\r\n",
  "HTTP/1.1 199 -\r\n\r\n",
].join("");

/** The first request of `text`, once it is complete. */
function takeRequest(text: string): { request: RawRequest; rest: string } | undefined {
  const end = text.indexOf("\r\n\r\n");
  if (end === -1) return undefined;
  const [first = "", ...lines] = text.slice(0, end).split("\r\n");
  const [method = "", path = ""] = first.split(" ");
  const headers: Record<string, string> = {};
  for (const line of lines) {
    const colon = line.indexOf(":");
    headers[line.slice(0, colon).toLowerCase()] = line.slice(colon + 1).trim();
  }
  const bodyEnd = end + 4 + Number(headers["content-length"] ?? 0);
  if (text.length < bodyEnd) return undefined;
  return {
    request: { method, path, headers, body: text.slice(end + 4, bodyEnd) },
    rest: text.slice(bodyEnd),
  };
}
