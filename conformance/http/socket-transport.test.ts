import { afterEach, expect, test } from "bun:test";
import type { Socket } from "node:net";
import { closeServers, listen, OK, put } from "../tests/loopback-server.ts";
import { SocketTransport } from "./socket-transport.ts";

const settings = { timeoutMs: 60_000, proxy: undefined };
const tls = { rejectUnauthorized: true };
afterEach(closeServers);

const CHUNKED = { body: "{}", framing: "chunked" } as const;

test.each([
  ["with a length", { body: "{}" }, "\r\n\r\n{", "}"],
  ["in chunks", CHUNKED, "\r\n\r\n1\r\n{\r\n1\r\n", "}\r\n0\r\n\r\n"],
  ["in chunks, of an empty body", { ...CHUNKED, body: "" }, "\r\n\r\n", "0\r\n\r\n"],
  ["without a body", { method: "DELETE", body: undefined }, "Connection: close\r\n", "\r\n"],
  ["of an empty body", { body: "" }, "Content-Length: 0\r\n", "\r\n"],
] as const)(
  "a held request %s sends the rest, and nothing before it, on release",
  async (_, shape, first, rest) => {
    let bytes = "";
    const arrived = Promise.withResolvers<void>();
    const url = await listen((socket, each) => {
      bytes = each;
      if (bytes.endsWith(first)) arrived.resolve();
      if (bytes.endsWith(first + rest)) socket.end(OK);
    });
    const transport = new SocketTransport(settings, tls);
    const request = await transport.hold({ ...put(url), ...shape });
    await arrived.promise;
    const held = bytes;
    const { reply, early } = await request.release();
    expect([reply?.status, early]).toEqual([204, false]);
    expect(bytes).toBe(held + rest);
    transport.close();
  },
);

test.each([
  ["with a length", { body: "{}" }],
  ["in chunks", CHUNKED],
  ["without a body", { method: "DELETE", body: undefined }],
] as const)("Bun does not answer a held request %s before its release", async (_, shape) => {
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: async (request) => new Response(await request.text()),
  });
  const url = server.url.href.replace(/\/$/, "");
  const transport = new SocketTransport(settings, tls);
  const request = await transport.hold({ ...put(url), ...shape });
  // Whatever the server answers early is there once it has answered a request that was sent later.
  await transport.send(put(url));
  const { reply, early } = await request.release();
  expect([reply?.status, early]).toEqual([200, false]);
  transport.close();
  await server.stop(true);
});

test.each([
  ["answers", (socket: Socket) => socket.write(OK), 204],
  ["closes the connection", (socket: Socket) => socket.end(), undefined],
])(
  "a server that %s before the release: the reply is early, and took no negative time",
  async (_, act, status) => {
    const left = Promise.withResolvers<void>();
    const url = await listen((socket) => {
      socket.on("close", () => left.resolve());
      act(socket);
    });
    const transport = new SocketTransport(settings, tls);
    const request = await transport.hold(put(url));
    await left.promise;
    const { reply, early, sentAt, answeredAt } = await request.release();
    expect([reply?.status, early]).toEqual([status, true]);
    expect(answeredAt - sentAt).toBeGreaterThanOrEqual(0);
    transport.close();
  },
);

test.each([
  ["closes without saying so", "", true],
  ["says that it closes", "Connection: close\r\n", false],
])("a server that %s", async (_, header, expected) => {
  const url = await listen((socket) =>
    socket.end(`HTTP/1.1 404 Not Found\r\n${header}Content-Length: 0\r\n\r\n`),
  );
  const transport = new SocketTransport(settings, tls);
  expect(await transport.closesUnannounced({ ...put(url), method: "GET", body: undefined })).toBe(expected);
  transport.close();
});

test("a server that keeps the connection is seen to", async () => {
  const url = await listen(
    (socket) => void socket.write("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"),
  );
  const transport = new SocketTransport(settings, tls);
  expect(await transport.closesUnannounced({ ...put(url), method: "GET", body: undefined })).toBe(false);
  transport.close();
});

test("a connection serves request after request, and is opened again where the server has closed it", async () => {
  let connections = 0;
  const seen = new WeakSet<Socket>();
  const url = await listen((socket, bytes) => {
    if (!seen.has(socket)) connections += 1;
    seen.add(socket);
    const requests = bytes.split("\r\n\r\n{}").length - 1;
    // Without a word after the second of each connection.
    if (requests === 2) socket.end(OK);
    else socket.write(OK);
  });
  const connection = new SocketTransport(settings, tls).connection();
  for (const expected of [1, 1, 2, 2]) {
    expect((await connection.send(put(url))).reply?.status).toBe(204);
    expect(connections).toBe(expected);
  }
  connection.close();
});
