/** What stands between the kit and a deployment: a private CA, an HTTP proxy, or both. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { connect, createServer, type Server, type Socket } from "node:net";
import { selfSigned } from "./self-signed.ts";
import { Workplace } from "./testing-cli.ts";

const { TEST_SERVER } = process.env;
/** The service of this project; a whole test run compiles it once. */
const SERVICE =
  TEST_SERVER === undefined
    ? [process.execPath, new URL("../../server/main.ts", import.meta.url).pathname]
    : [TEST_SERVER];

let place: Workplace;
const services: Bun.Subprocess[] = [];
const url = { http: "", https: "" };
let proxy: ForwardProxy;

beforeAll(async () => {
  place = new Workplace({});
  const { cert, key } = selfSigned();
  writeFileSync(place.path("ca.pem"), cert);
  writeFileSync(place.path("key.pem"), key, { mode: 0o600 });
  url.http = await startService("http", {});
  url.https = await startService("https", {
    TLS_CERT_FILE: place.path("ca.pem"),
    TLS_KEY_FILE: place.path("key.pem"),
  });
  proxy = await ForwardProxy.start();
});

afterAll(async () => {
  for (const service of services) service.kill();
  await Promise.all(services.map(({ exited }) => exited));
  proxy.close();
  place.remove();
});

async function startService(name: "http" | "https", tls: Record<string, string>): Promise<string> {
  mkdirSync(place.path(name));
  const service = Bun.spawn([...SERVICE, "serve", "--print-url"], {
    cwd: place.path(name),
    env: { ...process.env, PORT: "0", LOG_LEVEL: "silent", STOP_GRACE: "0", ...tls },
    stdio: ["ignore", "pipe", "inherit"],
  });
  services.push(service);
  const { value } = await service.stdout.getReader().read();
  return JSON.parse(new TextDecoder().decode(value)).url;
}

/** Reads and writes, by undici and by sockets of the kit's own. */
const RULES = "ETG-01,ETG-07,IFM-01,IFM-08,IFM-14,ATM-01";

/** Runs the kit with these lines in its profile. */
async function run(name: "http" | "https", ...lines: string[]): ReturnType<Workplace["kit"]> {
  const token = readFileSync(place.path(name, "data/admin.token"), "utf8").trim();
  place.env["KIT_TOKEN"] = token;
  const profile = place.path("profile.toml");
  writeFileSync(profile, [`base-url = "${url[name]}"`, ...lines].join("\n"));
  return await place.kitHere(
    ...["run", "--profile", profile, "--header-env", "Authorization: Bearer $KIT_TOKEN"],
    ...["--quick", "--only", RULES],
  );
}

test("a private CA is trusted where the profile names it, and said to be the trouble where it does not", async () => {
  const unknown = await run("https");
  expect(unknown.exitCode).toBe(4);
  expect(unknown.stdout + unknown.stderr).toMatch(/certificate/i);
  const trusted = await run("https", "[tls]", `ca-file = "${place.path("ca.pem")}"`);
  expect([trusted.exitCode, trusted.stdout]).toEqual([0, expect.stringContaining("conforms:")]);
  const unchecked = await run("https", "[tls]", "insecure = true");
  expect(unchecked.exitCode).toBe(0);
});

test("through a proxy everything goes the same way, the raw probes too, and the deployment conforms as it does without", async () => {
  const plain = await run("http", `proxy = "${proxy.url}"`);
  expect([plain.exitCode, plain.stdout]).toEqual([0, expect.stringContaining("conforms:")]);
  // undici opens a tunnel; the raw probes name the whole address.
  expect(proxy.targets("CONNECT").length + proxy.targets("PUT").length).toBeGreaterThan(0);
  expect(new Set(proxy.hosts())).toEqual(new Set([new URL(url.http).host]));

  const secure = await run("https", `proxy = "${proxy.url}"`, "[tls]", `ca-file = "${place.path("ca.pem")}"`);
  expect([secure.exitCode, secure.stdout]).toEqual([0, expect.stringContaining("conforms:")]);
  expect(new Set(proxy.hosts())).toEqual(new Set([url.http, url.https].map((each) => new URL(each).host)));
});

test("flags and the environment name the way as the profile does", async () => {
  const token = readFileSync(place.path("https", "data/admin.token"), "utf8").trim();
  const command = `echo "Authorization: Bearer ${token}"`;
  const words = ["run", "--base-url", url.https, "--header-command", command, "--only", "ETG-01"];
  const before = proxy.hosts().length;
  const direct = await place.kit(...words, "--cacert", place.path("ca.pem"));
  expect([direct.exitCode, proxy.hosts().length]).toEqual([0, before]);
  expect(direct.stdout).not.toContain(token);
  const named = await place.kit(...words, "--cacert", place.path("ca.pem"), "--proxy", proxy.url);
  expect(named.exitCode).toBe(0);
  const after = proxy.hosts().length;
  expect(after).toBeGreaterThan(before);
  place.env["https_proxy"] = proxy.url.replace("http://", "");
  const found = await place.kit(...words, "--cacert", place.path("ca.pem"));
  expect(found.exitCode).toBe(0);
  const last = proxy.hosts().length;
  expect(last).toBeGreaterThan(after);
  place.env["no_proxy"] = "127.0.0.1";
  expect((await place.kit(...words, "--cacert", place.path("ca.pem"))).exitCode).toBe(0);
  expect(proxy.hosts().length).toBe(last);
  delete place.env["https_proxy"];
  delete place.env["no_proxy"];
  const half = await place.kit(...words, "--cert", place.path("ca.pem"));
  expect([half.exitCode, half.stderr]).toEqual([2, expect.stringContaining("--cert and --key")]);
});

/** A forward proxy: it opens tunnels, and passes on what names a whole address. */
class ForwardProxy {
  readonly url: string;
  readonly #server: Server;
  readonly #sockets: Set<Socket>;
  readonly #requests: { method: string; target: string }[];

  private constructor(
    server: Server,
    sockets: Set<Socket>,
    requests: { method: string; target: string }[],
    port: number,
  ) {
    this.#server = server;
    this.#sockets = sockets;
    this.#requests = requests;
    this.url = `http://127.0.0.1:${port}`;
  }

  static async start(): Promise<ForwardProxy> {
    const sockets = new Set<Socket>();
    const requests: { method: string; target: string }[] = [];
    const server = createServer((client) => {
      sockets.add(client);
      client.on("error", () => client.destroy());
      client.once("data", (first: Buffer) => {
        // What comes before the way on is open waits for it.
        client.pause();
        const [, method = "", target = ""] = /^(\S+) (\S+) /.exec(first.toString("latin1")) ?? [];
        requests.push({ method, target });
        const isTunnel = method === "CONNECT";
        const { hostname, port } = new URL(isTunnel ? `http://${target}` : target);
        const upstream = connect(Number(port), hostname, () => {
          if (isTunnel) client.write("HTTP/1.1 200 Connection established\r\n\r\n");
          else upstream.write(first);
          client.pipe(upstream);
          upstream.pipe(client);
        });
        sockets.add(upstream);
        upstream.on("error", () => client.destroy());
        client.on("close", () => upstream.destroy());
      });
    });
    await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
    const address = server.address();
    return new ForwardProxy(
      server,
      sockets,
      requests,
      typeof address === "object" ? (address?.port ?? 0) : 0,
    );
  }

  targets(method: string): string[] {
    return this.#requests.filter((request) => request.method === method).map(({ target }) => target);
  }

  /** Of every connection, the host that it asked for. */
  hosts(): string[] {
    return this.#requests.map(({ method, target }) => (method === "CONNECT" ? target : new URL(target).host));
  }

  close(): void {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
  }
}

/** A certificate for 127.0.0.1 that signs itself, so that it is its own CA, and its key, as PEM. */
