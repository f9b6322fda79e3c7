/**
 * The ways to a server: proxies, TLS and client certificates, each over real sockets; every refusal names
 * its cause.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import http from "node:http";
import http2 from "node:http2";
import net, { type AddressInfo } from "node:net";
import { join } from "node:path";
import tls from "node:tls";
import { makeCertificates } from "./support/certificates.ts";
import { runClient, temporaryDirectory } from "./support/client.ts";
import { compiledClient } from "./support/executable.ts";
import { CONTINUE, INTERIM } from "./support/raw-server.ts";

let command: string[];
const certificates = makeCertificates();
const { ca, certificate: cert, key } = certificates;
const place = temporaryDirectory();
const caPath = join(place.path, "ca.pem");
writeFileSync(caPath, ca);
beforeAll(async () => {
  command = [await compiledClient()];
});
const stops: (() => unknown)[] = [() => place[Symbol.dispose]()];
afterAll(() => {
  for (const stop of stops.splice(0)) stop();
});

const ID = "00000000-0000-4000-8000-000000000000";
const CUSTOMER = JSON.stringify({ id: ID, name: "Ada", email: "ada@example.com", status: "active" });
const REPLY = `HTTP/1.1 200 OK\r\netag: "1"\r\ncontent-type: application/json\r\ncontent-length: ${CUSTOMER.length}\r\nconnection: close\r\n\r\n${CUSTOMER}`;

/** Starts any server on a free port, and stops it after the tests. */
async function listen(server: net.Server): Promise<number> {
  server.on("tlsClientError", () => {});
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  stops.push(() => server.close());
  return (server.address() as AddressInfo).port;
}
const get = (url: string, options: { args?: string[]; env?: Record<string, string> } = {}) =>
  runClient(["get", ID, "--url", url, ...(options.args ?? [])], {
    command,
    env: { CUSTOMERS_TOKEN: "t", ...options.env },
  });

/** Answers in the server's place, and records what it is asked. */
async function startProxy(status: number) {
  const seen: { target: string; credentials: string | undefined }[] = [];
  const answer = (request: http.IncomingMessage) => {
    seen.push({
      target: `${request.method} ${request.url}`,
      credentials: request.headers["proxy-authorization"],
    });
  };
  const server = http.createServer((request, response) => {
    answer(request);
    response.writeHead(status, { etag: '"1"', "content-type": "application/json" });
    response.end(status === 200 ? CUSTOMER : "");
  });
  server.on("connect", (request, socket) => {
    answer(request);
    socket.end(`HTTP/1.1 ${status} Refused\r\ncontent-length: 0\r\n\r\n`);
  });
  const port = await listen(server);
  return { seen, port, url: `http://127.0.0.1:${port}` };
}

describe("proxies", () => {
  test.each([
    ["http", 407, "the proxy asks for credentials (407)"],
    ["https", 407, "the proxy asks for credentials (407)"],
    ["https", 403, "the proxy refuses to connect to the server (403)"],
    ["https", 502, "the proxy refuses to connect to the server (502)"],
  ])("a refusal of the proxy of an %s:// server (%d) is named", async (scheme, status, words) => {
    const proxy = await startProxy(status);
    const ended = await get(`${scheme}://customers.invalid`, { env: { [`${scheme}_proxy`]: proxy.url } });
    expect(ended.exitCode).toBe(7);
    expect(ended.stderr).toContain(words);
    expect(ended.stderr).toContain(`127.0.0.1:${proxy.port} (${scheme}_proxy)`);
    expect(proxy.seen.length).toBeGreaterThan(0);
  });

  test("no proxy is blamed for a server whose port is 407", async () => {
    const { stderr, exitCode } = await get("http://127.0.0.1:407");
    expect(exitCode).toBe(7);
    expect(stderr).not.toContain("proxy asks");
  });

  test.each([
    ["without a scheme", (port: number) => ({ http_proxy: `me:p%40ss@127.0.0.1:${port}` })],
    ["of all_proxy", (port: number) => ({ all_proxy: `http://me:p%40ss@127.0.0.1:${port}` })],
  ])("a proxy %s gets the whole URL and the decoded credentials", async (_, env) => {
    const proxy = await startProxy(200);
    const ended = await get("http://customers.invalid/base", { env: env(proxy.port) });
    expect(ended).toMatchObject({ exitCode: 0, stderr: "" });
    expect(proxy.seen).toEqual([
      {
        target: `GET http://customers.invalid/base/customers/${ID}`,
        credentials: `Basic ${Buffer.from("me:p@ss").toString("base64")}`,
      },
    ]);
  });

  test.each([
    ["a lone %", "ge%heim%", Buffer.from("ge%heim%")],
    ["a lone % beside an escape", "p%40s%", Buffer.from("p@s%")],
    ["a byte that is not UTF-8", "%e9", Buffer.of(0xe9)],
  ])("%s in a proxy's password is what curl makes of it", async (_, password, bytes) => {
    const credentials = `Basic ${Buffer.concat([Buffer.from("me:"), bytes]).toString("base64")}`;
    for (const scheme of ["http", "https"]) {
      const proxy = await startProxy(403);
      const url = `http://me:${password}@127.0.0.1:${proxy.port}`;
      await get(`${scheme}://customers.invalid`, { env: { [`${scheme}_proxy`]: url } });
      expect({ scheme, sent: proxy.seen[0]?.credentials }).toEqual({ scheme, sent: credentials });
    }
  });

  test("a server that no_proxy names is not asked for through the proxy: the token does not go there", async () => {
    const proxy = await startProxy(200);
    const env = { http_proxy: proxy.url, no_proxy: "10.0.0.0/8, .invalid:8080" };
    expect(await get("http://customers.invalid:8080", { env })).toMatchObject({ exitCode: 7 });
    expect(proxy.seen).toEqual([]);
  });

  test.each(["socks5://127.0.0.1:1080", "https://127.0.0.1:3128"])("%s is refused by name", async (url) => {
    for (const options of [{ env: { http_proxy: url } }, { args: ["--proxy", url] }]) {
      const { exitCode, stderr } = await get("http://customers.invalid", options);
      expect(exitCode).toBe(2);
      expect(stderr).toContain(`${url.split(":")[0]}:// proxies are not supported`);
    }
  });
});

describe("interim responses that nobody asked for are passed over", () => {
  /** Each connection may be used again. */
  const answerBehind = (interim: string) => (socket: net.Socket) => {
    socket.on("error", () => {});
    socket.on("data", () => socket.write(interim + REPLY.replace("close", "keep-alive")));
  };
  const cases = [
    ["100 Continue", CONTINUE],
    ["several", INTERIM],
  ] as const;

  test.each(cases)("%s: by a server", async (_, interim) => {
    const port = await listen(net.createServer(answerBehind(interim)));
    const { exitCode, stdout } = await get(`http://127.0.0.1:${port}`, { args: [ID] });
    expect([exitCode, stdout.match(/ada@example.com/g)?.length]).toEqual([0, 2]);
  });

  test.each(cases)("%s: by a proxy of an http:// server", async (_, interim) => {
    const proxy = await listen(net.createServer(answerBehind(interim)));
    const env = { http_proxy: `http://127.0.0.1:${proxy}` };
    expect(await get("http://customers.invalid", { env })).toMatchObject({ exitCode: 0, stderr: "" });
  });

  test.each(cases)("%s: by an https:// server behind a proxy", async (_, interim) => {
    const port = await listen(tls.createServer({ cert, key }, answerBehind(interim)));
    const proxy = http.createServer().on("connect", (_, inbound) => {
      const outbound = net.connect(port, "127.0.0.1", () => inbound.write("HTTP/1.1 200 -\r\n\r\n"));
      outbound
        .on("error", () => {})
        .pipe(inbound.on("error", () => {}))
        .pipe(outbound);
    });
    const env = { https_proxy: `http://127.0.0.1:${await listen(proxy)}` };
    const ended = await get(`https://127.0.0.1:${port}`, { args: ["--cacert", caPath], env });
    expect(ended).toMatchObject({ exitCode: 0, stderr: "" });
  });
});

describe("a mismatch of protocols is named, and --insecure is not suggested", () => {
  const silent = (socket: net.Socket) => void socket.on("error", () => {});
  const old = { minVersion: "TLSv1.1", maxVersion: "TLSv1.1" } as const;
  test.each<[string, string, () => net.Server, string]>([
    [
      "https to a port of plain HTTP",
      "https",
      () => http.createServer((_, response) => response.end()),
      "does not speak TLS",
    ],
    [
      "https to another service",
      "https",
      () => net.createServer((socket) => void silent(socket.end("220 mail\r\n"))),
      "does not speak TLS",
    ],
    ["TLS 1.1 alone", "https", () => tls.createServer({ cert, key, ...old }, silent), "no version of TLS"],
    [
      "HTTP/2 alone",
      "https",
      () => http2.createSecureServer({ cert, key, allowHTTP1: false }),
      "HTTP/2 only",
    ],
    ["http to a port of TLS", "http", () => tls.createServer({ cert, key }, silent), "with https://"],
    [
      "http to another service",
      "http",
      () => net.createServer((socket) => void silent(socket.end("220 mail\r\n"))),
      "does not speak HTTP/1.1",
    ],
  ])("%s", async (_, scheme, make, words) => {
    const port = await listen(make());
    const { exitCode, stderr } = await get(`${scheme}://127.0.0.1:${port}`, {
      args: [...(scheme === "https" ? ["--cacert", caPath] : [])],
    });
    expect(exitCode).toBe(7);
    expect(stderr).toContain(words);
    expect(stderr).not.toContain("--insecure");
  });
});

describe("a client certificate", () => {
  /**
   * Knows by the peer's certificate whether to answer, as a server with optional client certificates does.
   */
  const startAsking = () =>
    listen(
      tls.createServer({ cert, key, ca, requestCert: true, rejectUnauthorized: false }, (socket) => {
        const known = socket.authorized;
        socket.on("error", () => {});
        socket.once("data", () => socket.end(known ? REPLY : "HTTP/1.1 403 No\r\ncontent-length: 0\r\n\r\n"));
      }),
    );
  test.each(["TLSv1.2", "TLSv1.3"] as const)("%s: a server that demands one is named", async (version) => {
    const only = { minVersion: version, maxVersion: version };
    const demand = { cert, key, ca, requestCert: true, rejectUnauthorized: true, ...only };
    const port = await listen(tls.createServer(demand, (socket) => socket.on("error", () => {}).end(REPLY)));
    const { exitCode, stderr } = await get(`https://127.0.0.1:${port}`, { args: ["--cacert", caPath] });
    expect(exitCode).toBe(7);
    expect(stderr).toContain("client certificate");
    expect(stderr).not.toContain("--insecure");
  });

  const certPath = join(place.path, "client.pem");
  const keyPath = join(place.path, "client.key");
  const bothPath = join(place.path, "both.pem");
  writeFileSync(certPath, cert);
  writeFileSync(keyPath, key);
  writeFileSync(bothPath, cert + key);

  test.each([
    ["none", [], 3],
    ["--cert and --key", ["--cert", certPath, "--key", keyPath], 0],
    ["--cert with both in one file", ["--cert", bothPath], 0],
  ])("%s", async (_, args, exitCode) => {
    const port = await startAsking();
    const ended = await get(`https://127.0.0.1:${port}`, { args: ["--cacert", caPath, ...args] });
    expect(ended).toMatchObject({ exitCode });
  });

  test.each([
    ["a key alone", ["--key", keyPath], "--key is given without --cert"],
    ["no key", ["--cert", certPath], "holds no private key"],
    [
      "a key of another certificate",
      ["--cert", caPath, "--key", keyPath],
      "is not the key of the certificate",
    ],
    ["no certificate", ["--cert", keyPath], "holds no certificate"],
  ])("%s is refused before anything is sent", async (_, args, words) => {
    const { exitCode, stderr } = await get("https://127.0.0.1:1", { args });
    expect(exitCode).toBe(2);
    expect(stderr).toContain(words);
  });
});
