import { afterEach, expect, test } from "bun:test";
import type { Socket } from "node:net";
import { createServer as createTlsServer, type TLSSocket } from "node:tls";
import { closeServers, listen, OK, put } from "../tests/loopback-server.ts";
import { selfSigned } from "../tests/self-signed.ts";
import type { Outgoing } from "./request-bytes.ts";
import { Transport } from "./transport.ts";
import { checkTransport } from "./transport-check.ts";

const settings = { timeoutMs: 60_000, tls: { ca: undefined, insecure: false }, proxy: undefined };
/** For what never comes. */
const impatient = { ...settings, timeoutMs: 300 };
afterEach(closeServers);

const WAYS = {
  undici: (transport: Transport, outgoing: Outgoing) => transport.send(outgoing),
  sockets: (transport: Transport, outgoing: Outgoing) => transport.sockets.send(outgoing),
} as const;

test.each([
  ["that was asked for", [["Expect", "100-continue"]], false],
  ["that nobody asked for", [], true],
] as const)("100 Continue %s: sockets alone from then on: %j %j", async (_what, headers, socketOnly) => {
  const url = await listen((socket, bytes) => {
    if (bytes.endsWith("{}")) socket.end(`HTTP/1.1 100 Continue\r\n\r\n${OK}`);
  });
  const transport = new Transport(settings);
  expect((await transport.sockets.send({ ...put(url), headers })).reply?.status).toBe(204);
  expect(transport.socketOnly).toBe(socketOnly);
});

test("the start-up check holds on this machine", async () => {
  await checkTransport();
});

test.each(["undici", "sockets"] as const)("%s: no complete reply is a value that says why", async (way) => {
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
    const { reply, failure } = await WAYS[way](transport, put(url));
    expect(reply).toBeNull();
    expect(failure?.length ?? 0).toBeGreaterThan(5);
    await transport.close();
  }
  const nobody = new Transport(impatient);
  expect((await WAYS[way](nobody, put("http://127.0.0.1:1"))).failure).toContain("ECONNREFUSED");
  await nobody.close();
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
  expect((await transport.sockets.send({ ...put(""), url })).reply?.status).toBe(204);
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
  expect((await warned.sockets.send(put(url))).reply?.status).toBe(204);
  expect((await warned.send(put(url))).reply?.status).toBe(204);
  await warned.close();
});

test.each([
  ["undici", "http"],
  ["sockets", "http"],
  ["undici", "https"],
  ["sockets", "https"],
] as const)("407 is the proxy's, and no answer of the service: %s over %s", async (way, scheme) => {
  const url = await listen((socket) =>
    socket.end(
      "HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
    ),
  );
  const transport = new Transport({ ...settings, proxy: { kind: "explicit", url } });
  const { reply, failure } = await WAYS[way](transport, {
    ...put(""),
    url: `${scheme}://customers.invalid/a`,
  });
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
  for (const way of ["undici", "sockets"] as const)
    await WAYS[way](transport, { ...put(""), url: "http://customers.invalid/customers/a" });
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
    expect((await transport.sockets.send(put(url))).reply?.status).toBe(204);
    await transport.close();
  }
  expect(seen).toEqual([true, true, false, false]);
  await new Promise<void>((closed) => server.close(() => closed()));
});
