/** Loopback servers of one test, that answer from the bytes of a request. */
import { createServer, type Server, type Socket } from "node:net";

const open: { server: Server; sockets: Set<Socket> }[] = [];

/** Stops all servers and ends their connections: for `afterEach`. */
export function closeServers(): void {
  for (const { server, sockets } of open.splice(0)) {
    for (const socket of sockets) socket.destroy();
    server.close();
  }
}

/** A loopback server that hands each request's bytes, so far, to `act`. */
export async function listen(act: (socket: Socket, bytes: string) => void): Promise<string> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    let bytes = "";
    socket.on("error", () => socket.destroy());
    socket.on("data", (chunk: Buffer) => {
      bytes += chunk.toString("latin1");
      act(socket, bytes);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  open.push({ server, sockets });
  const address = server.address();
  return `http://127.0.0.1:${typeof address === "object" ? address?.port : 0}`;
}

/** An ordinary write to such a server. */
export const put = (url: string) => ({
  method: "PUT",
  url: `${url}/customers/a`,
  headers: [["If-Match", '"a"']] as const,
  body: "{}",
});

/** The reply to it. */
export const OK = 'HTTP/1.1 204 No Content\r\nETag: "b"\r\n\r\n';
