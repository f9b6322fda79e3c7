import { afterEach, expect, test } from "bun:test";
import { createServer, type Server, type Socket } from "node:net";
import { createServer as createTlsServer, type TLSSocket } from "node:tls";
import { selfSigned } from "../tests/self-signed.ts";
import { Transport } from "./transport.ts";
import { checkTransport } from "./transport-check.ts";

const settings = { timeoutMs: 60_000, tls: { ca: undefined, insecure: false }, proxy: undefined };
/** For what never comes. */
const impatient = { ...settings, timeoutMs: 300 };
const open: { server: Server; sockets: Set<Socket> }[] = [];
afterEach(() => {
  for (const { server, sockets } of open.splice(0)) {
    for (const socket of sockets) socket.destroy();
    server.close();
  }
});

/** A loopback server that hands each request's bytes, so far, to `act`. */
async function listen(act: (socket: Socket, bytes: string) => void): Promise<string> {
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

const put = (url: string) => ({
  method: "PUT",
  url: `${url}/customers/a`,
  headers: [["If-Match", '"a"']] as const,
  body: "{}",
});
const OK = 'HTTP/1.1 204 No Content\r\nETag: "b"\r\n\r\n';

test.each([
  ["that was asked for", [["Expect", "100-continue"]], false],
  ["that nobody asked for", [], true],
] as const)("100 Continue %s: sockets alone from then on: %j %j", async (_what, headers, socketOnly) => {
  const url = await listen((socket, bytes) => {
    if (bytes.endsWith("{}")) socket.end(`HTTP/1.1 100 Continue\r\n\r\n${OK}`);
  });
  const transport = new Transport(settings);
  expect((await transport.sendRaw({ ...put(url), headers })).reply?.status).toBe(204);
  expect(transport.socketOnly).toBe(socketOnly);
});

test("the start-up check holds on this machine", async () => {
  await checkTransport();
});

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
    const transport = new Transport(settings);
    const request = await transport.hold({ ...put(url), ...shape });
    await arrived.promise;
    const held = bytes;
    const { reply, early } = await request.release();
    expect([reply?.status, early]).toEqual([204, false]);
    expect(bytes).toBe(held + rest);
    await transport.close();
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
  const transport = new Transport(settings);
  const request = await transport.hold({ ...put(url), ...shape });
  // Whatever the server answers early is there once it has answered a request that was sent later.
  await transport.sendRaw(put(url));
  const { reply, early } = await request.release();
  expect([reply?.status, early]).toEqual([200, false]);
  await transport.close();
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
    const transport = new Transport(settings);
    const request = await transport.hold(put(url));
    await left.promise;
    const { reply, early, sentAt, answeredAt } = await request.release();
    expect([reply?.status, early]).toEqual([status, true]);
    expect(answeredAt - sentAt).toBeGreaterThanOrEqual(0);
    await transport.close();
  },
);

test.each(["send", "sendRaw"] as const)("%s: no complete reply is a value that says why", async (way) => {
  const cases: [string, (socket: Socket) => void][] = [
    ["silence", () => {}],
    ["close", (socket) => socket.destroy()],
    ["half", (socket) => socket.end("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}")],
    ["nonsense", (socket) => socket.end("SSH-2.0-OpenSSH\r\n\r\n")],
  ];
  for (const [, act] of cases) {
    const url = await listen((socket, bytes) => {
      if (bytes.endsWith("{}")) act(socket);
    });
    const transport = new Transport(impatient);
    const { reply, failure } = await transport[way](put(url));
    expect(reply).toBeNull();
    expect(failure?.length ?? 0).toBeGreaterThan(5);
    await transport.close();
  }
  const nobody = new Transport(impatient);
  expect((await nobody[way](put("http://127.0.0.1:1"))).failure).toContain("ECONNREFUSED");
  await nobody.close();
});

test.each([
  ["closes without saying so", "", true],
  ["says that it closes", "Connection: close\r\n", false],
])("a server that %s", async (_, header, expected) => {
  const url = await listen((socket) =>
    socket.end(`HTTP/1.1 404 Not Found\r\n${header}Content-Length: 0\r\n\r\n`),
  );
  const transport = new Transport(settings);
  expect(await transport.closesUnannounced({ ...put(url), method: "GET", body: undefined })).toBe(expected);
  await transport.close();
});

test("a server that keeps the connection is seen to", async () => {
  const url = await listen(
    (socket) => void socket.write("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"),
  );
  const transport = new Transport(settings);
  expect(await transport.closesUnannounced({ ...put(url), method: "GET", body: undefined })).toBe(false);
  await transport.close();
});

test("a proxy is used, by both ways, with the absolute target", async () => {
  const targets: string[] = [];
  const proxy = await listen((socket, bytes) => {
    if (!bytes.endsWith("{}")) return;
    targets.push(bytes.split(" ")[1] ?? "");
    socket.end("HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n");
  });
  const transport = new Transport({ ...settings, proxy: { kind: "explicit", url: proxy } });
  const url = "http://customers.invalid:8080/customers/a";
  expect((await transport.send({ ...put(""), url })).reply?.status).toBe(204);
  expect((await transport.sendRaw({ ...put(""), url })).reply?.status).toBe(204);
  expect(targets).toEqual([url, url]);
  await transport.close();
});

test("interim answers that nobody asked for are passed over: 100 after a first request over a socket", async () => {
  let puts = 0;
  const url = await listen((socket, bytes) => {
    if (!bytes.endsWith("{}") && !bytes.startsWith("GET")) return;
    if (bytes.startsWith("PUT")) puts += 1;
    socket.write("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n");
    socket.end('HTTP/1.1 204 No Content\r\nETag: "a"\r\nConnection: close\r\n\r\n');
  });
  const asked = new Transport(settings);
  expect((await asked.send({ ...put(url), method: "GET", body: undefined })).reply?.status).toBe(204);
  await asked.close();
  const written = new Transport(settings);
  // A write is not sent again by itself, whether or not undici loses its answer (the client changes undici, and its tests
  // may have run in this process); the next one is understood.
  await written.send(put(url));
  expect(puts).toBe(1);
  expect((await written.send(put(url))).reply?.status).toBe(204);
  await written.close();
  const warned = new Transport(settings);
  expect((await warned.sendRaw(put(url))).reply?.status).toBe(204);
  expect((await warned.send(put(url))).reply?.status).toBe(204);
  await warned.close();
});

test.each([
  ["send", "http"],
  ["sendRaw", "http"],
  ["send", "https"],
  ["sendRaw", "https"],
] as const)("407 is the proxy's, and no answer of the service: %s over %s", async (way, scheme) => {
  const url = await listen((socket) =>
    socket.end(
      "HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
    ),
  );
  const transport = new Transport({ ...settings, proxy: { kind: "explicit", url } });
  const { reply, failure } = await transport[way]({ ...put(""), url: `${scheme}://customers.invalid/a` });
  expect(reply).toBeNull();
  expect(failure).toContain("a proxy on the way asks for credentials (407)");
  await transport.close();
});

test("the user and password of a proxy's URL are sent to it, by both ways", async () => {
  const sent: string[] = [];
  const url = await listen((socket, bytes) => {
    if (!bytes.endsWith("{}")) return;
    sent.push(/^proxy-authorization: (.*)$/im.exec(bytes)?.[1]?.trim() ?? "");
    socket.end("HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n");
  });
  const named = url.replace("http://", "http://kit:open%20sesame@");
  const transport = new Transport({ ...settings, proxy: { kind: "explicit", url: named } });
  for (const way of ["send", "sendRaw"] as const)
    await transport[way]({ ...put(""), url: "http://customers.invalid/customers/a" });
  expect(sent).toEqual([`Basic ${btoa("kit:open sesame")}`, `Basic ${btoa("kit:open sesame")}`]);
  await transport.close();
});

test("a client certificate is shown to the service, by both ways", async () => {
  const own = selfSigned();
  const client = selfSigned();
  const seen: boolean[] = [];
  const server = createTlsServer({ ...own, ca: client.cert, requestCert: true, rejectUnauthorized: false });
  server.on("secureConnection", (socket: TLSSocket) => {
    socket.on("error", () => socket.destroy());
    socket.once("data", () => {
      seen.push(Object.keys(socket.getPeerCertificate() ?? {}).length > 0);
      socket.end("HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n");
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  const url = `https://127.0.0.1:${typeof address === "object" ? address?.port : 0}`;
  for (const tls of [
    { ca: own.cert, insecure: false, cert: client.cert, key: client.key },
    { ca: own.cert, insecure: false },
  ]) {
    const transport = new Transport({ timeoutMs: 3000, tls, proxy: undefined });
    expect((await transport.send(put(url))).reply?.status).toBe(204);
    expect((await transport.sendRaw(put(url))).reply?.status).toBe(204);
    await transport.close();
  }
  expect(seen).toEqual([true, true, false, false]);
  await new Promise<void>((closed) => server.close(() => closed()));
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
  const connection = new Transport(settings).connection();
  for (const expected of [1, 1, 2, 2]) {
    expect((await connection.send(put(url))).reply?.status).toBe(204);
    expect(connections).toBe(expected);
  }
  connection.close();
});
