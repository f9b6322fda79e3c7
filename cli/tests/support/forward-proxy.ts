/**
 * An HTTP proxy as companies run them: CONNECT tunnels, and requests in absolute form (RFC 9110 §9.3.6, RFC
 * 9112 §3.2.2).
 */
import http from "node:http";
import net, { type AddressInfo } from "node:net";

export type ForwardProxy = {
  url: string;
  /** "CONNECT host:port" or "GET http://…", in order. */
  seen: string[];
  stop(): Promise<void>;
};

export async function startForwardProxy(): Promise<ForwardProxy> {
  const seen: string[] = [];
  const server = http.createServer((request, response) => {
    seen.push(`${request.method} ${request.url}`);
    const onward = http.request(
      request.url ?? "",
      { method: request.method, headers: request.headers },
      (reply) => {
        response.writeHead(reply.statusCode ?? 502, reply.headers);
        reply.pipe(response);
      },
    );
    onward.on("error", () => request.socket.destroy());
    request.pipe(onward);
  });
  server.on("connect", (request, socket, head) => {
    seen.push(`CONNECT ${request.url}`);
    const { hostname, port } = new URL(`http://${request.url}`);
    const onward = net.connect(Number(port || 80), hostname, () => {
      socket.write("HTTP/1.1 200 Connection Established\r\n\r\n");
      if (head.length > 0) onward.write(head);
      onward.pipe(socket);
      socket.pipe(onward);
    });
    onward.on("error", () => socket.destroy());
    socket.on("error", () => onward.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    seen,
    async stop() {
      server.closeAllConnections();
      server.close();
    },
  };
}
