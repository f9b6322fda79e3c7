/** What depends on the runtime, proved under `bun` and in the compiled executable alike. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { chmodSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type RunOptions, runClient, SOURCE_COMMAND, temporaryDirectory } from "./support/client.ts";
import { type CustomerServer, startCustomerServer } from "./support/customer-server.ts";
import { TOKEN } from "./support/dialect.ts";
import { compiledClient } from "./support/executable.ts";
import * as faults from "./support/faults.ts";
import { startFaultyProxy } from "./support/faulty-proxy.ts";
import { type ForwardProxy, startForwardProxy } from "./support/forward-proxy.ts";
import { startTlsFront, type TlsFront } from "./support/tls-front.ts";

const MAIN = new URL("../main.ts", import.meta.url).pathname;
const directory = temporaryDirectory();
let compiled: string;
const stops: (() => Promise<void>)[] = [];
let server: CustomerServer;
let id: string;
let secure: TlsFront;
let proxy: ForwardProxy;
let authority: string;

beforeAll(async () => {
  compiled = await compiledClient();
  server = startCustomerServer();
  id = server.add({ name: "Ada" }).id;
  secure = await startTlsFront(server.url);
  proxy = await startForwardProxy();
  authority = join(directory.path, "authority.pem");
  writeFileSync(authority, secure.ca);
  stops.push(server.stop, secure.stop, proxy.stop);
});
afterAll(async () => {
  for (const stop of stops.reverse()) await stop();
  directory[Symbol.dispose]();
});

describe.each([
  ["bun", () => SOURCE_COMMAND],
  ["the executable", () => [compiled]],
])("%s", (_, command) => {
  const get = (url: string, args: string[] = [], options: RunOptions = {}) =>
    runClient(["get", id, "--url", url, "-o", "value", "--fields", "name", ...args], {
      command: command(),
      ...options,
      env: { CUSTOMERS_TOKEN: TOKEN, ...options.env },
    });

  test("trusts a private authority that --cacert names", async () => {
    expect(await get(secure.url, ["--cacert", authority])).toMatchObject({ exitCode: 0, stdout: "Ada\n" });
  });

  test("does not trust it otherwise: exit 7, no request, and the way out is told", async () => {
    const before = server.requests.length;
    const { exitCode, stderr } = await get(secure.url, [], { env: { NODE_TLS_REJECT_UNAUTHORIZED: "0" } });
    expect({ exitCode, requests: server.requests.length }).toEqual({ exitCode: 7, requests: before });
    expect(stderr).toContain("--cacert");
    // Bun's warning says that nothing is checked.
    expect(stderr).not.toContain("NODE_TLS_REJECT_UNAUTHORIZED");
  });

  test("--insecure goes without, and warns", async () => {
    const { exitCode, stdout, stderr } = await get(secure.url, ["--insecure"]);
    expect({ exitCode, stdout }).toEqual({ exitCode: 0, stdout: "Ada\n" });
    expect(stderr).toContain("warning: --insecure");
  });

  test("--proxy: http in absolute form, https through a tunnel", async () => {
    proxy.seen.length = 0;
    expect(await get(server.url, ["--proxy", proxy.url])).toMatchObject({ exitCode: 0, stdout: "Ada\n" });
    expect(await get(secure.url, ["--proxy", proxy.url, "--cacert", authority])).toMatchObject({
      exitCode: 0,
      stdout: "Ada\n",
    });
    expect(proxy.seen).toEqual([
      `GET ${server.url}/customers/${id}?fields=id,name`,
      `CONNECT ${new URL(secure.url).host}`,
    ]);
  });

  test("a proxy that is not there is named, and not the server", async () => {
    const { exitCode, stderr } = await get(server.url, ["--proxy", "http://user:hidden@127.0.0.1:1"]);
    expect(exitCode).toBe(7);
    expect(stderr).toContain("through the proxy 127.0.0.1:1 (--proxy)");
    expect(stderr).not.toContain("hidden");
  });

  test("a proxy of the environment is not asked for this machine's own servers", async () => {
    proxy.seen.length = 0;
    expect(await get(server.url, [], { env: { http_proxy: proxy.url } })).toMatchObject({ exitCode: 0 });
    expect(proxy.seen).toEqual([]);
  });

  test("a proxy of the environment is asked for all others", async () => {
    proxy.seen.length = 0;
    // Nothing is looked up here: the proxy gets the name, and finds nobody.
    const { exitCode } = await get("https://customers.invalid", [], { env: { https_proxy: proxy.url } });
    expect(exitCode).toBe(7);
    expect(proxy.seen).toEqual(["CONNECT customers.invalid:443"]);
  });

  test("--timeout ends a request that is never answered: exit 7", async () => {
    const silent = await startFaultyProxy(server.url, faults.hang());
    const { exitCode, stderr } = await get(silent.url, ["--timeout", "1500ms"]);
    // On a busy machine the start alone takes longer.
    const short = await get(silent.url, ["--timeout", "30ms"]);
    await silent.stop();
    expect([exitCode, short.exitCode]).toEqual([7, 7]);
    expect(stderr).toMatch(/within [\d.]+ s/);
    expect(short.stderr).toMatch(/within \d+ ms|no time was left/);
  });
});

describe("a hostile current directory", () => {
  test.each([
    ["the executable reads nothing from it", () => [compiled]],
    ["main.ts by its first line reads nothing from it", () => [installed()]],
  ])("%s", async (_, command) => {
    using hostile = temporaryDirectory();
    const trap = join(hostile.path, "trapped");
    const write = (name: string, text: string) => writeFileSync(join(hostile.path, name), text);
    for (const name of [".env", ".env.local", ".env.production", ".env.development"]) {
      write(name, "CUSTOMERS_URL=http://127.0.0.1:9\nCUSTOMERS_TOKEN=stolen\nCUSTOMERS_PROFILE=evil\n");
    }
    write("preload.ts", `require("node:fs").writeFileSync(${JSON.stringify(trap)}, "")`);
    write("bunfig.toml", 'preload = ["./preload.ts"]\n');
    write("package.json", '{"name":"evil","imports":{"#x":"./preload.ts"}}');
    write("tsconfig.json", '{"compilerOptions":{"paths":{"commander":["./preload.ts"]}}}');
    write("config.toml", 'current = "evil"\n');
    const run = await runClient(["get", id, "-o", "json"], { command: command(), cwd: hostile.path });
    expect(run).toMatchObject({ exitCode: 2, stdout: "" });
    expect(run.stderr).toContain("no server is set");
    expect(await Bun.file(trap).exists()).toBe(false);
  });
});

/** As a package manager installs the bin: a link to main.ts on the PATH, run by its first line. */
function installed(): string {
  const link = join(directory.path, "installed-customers");
  chmodSync(MAIN, 0o755);
  symlinkSync(MAIN, link);
  return link;
}
