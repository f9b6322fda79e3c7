import { afterAll, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { judgeClock } from "../doctor/diagnosis.ts";
import { NOBODY_THERE, runClient, temporaryDirectory } from "./support/client.ts";
import { startCustomerServer } from "./support/customer-server.ts";
import { OURS, TOKEN, UNLIKE_OURS } from "./support/dialect.ts";
import * as faults from "./support/faults.ts";
import { type Fault, startFaultyProxy } from "./support/faulty-proxy.ts";
import { startForwardProxy } from "./support/forward-proxy.ts";
import { startTlsFront } from "./support/tls-front.ts";

const stops: (() => unknown)[] = [];
afterAll(async () => {
  for (const stop of stops.reverse()) await stop();
});

async function place(fault?: Fault, dialect = OURS) {
  const server = startCustomerServer(dialect);
  stops.push(server.stop);
  server.add({});
  if (fault === undefined) return { server, env: { CUSTOMERS_URL: server.url, CUSTOMERS_TOKEN: TOKEN } };
  const proxy = await startFaultyProxy(server.url, fault);
  stops.push(proxy.stop);
  return { server, env: { CUSTOMERS_URL: proxy.url, CUSTOMERS_TOKEN: TOKEN } };
}

type Finding = { check: string; verdict: string; found: string; fix?: string };

async function examine(env: Record<string, string>, args: string[] = []) {
  const run = await runClient(["doctor", "--output", "json", ...args], { env });
  const findings = JSON.parse(run.stdout) as Finding[];
  return { ...run, finding: (check: string) => findings.find((one) => one.check.startsWith(check)) };
}

test("a sound way is all ok, in words and as JSON, and is only read", async () => {
  const { server, env } = await place();
  const run = await runClient(["doctor", "--output", "table"], { env });
  expect([run.exitCode, run.stderr]).toEqual([0, ""]);
  const lines = run.stdout.trimEnd().split("\n");
  expect(lines.every((line) => line.startsWith("ok "))).toBe(true);
  for (const check of [
    "settings",
    "connection",
    "clock",
    "credentials",
    "entity-tag",
    "entity-tag with gzip",
    "freshness",
  ]) {
    expect(run.stdout).toContain(` ${check} `);
  }
  expect(run.stdout).not.toContain(TOKEN);
  expect(server.requests.every(({ method }) => method === "GET")).toBe(true);
});

test("the deployment unlike ours is sound too", async () => {
  const { server } = await place(undefined, UNLIKE_OURS);
  const env = { CUSTOMERS_URL: server.url, KEY: server.dialect.credentials.value };
  const { exitCode, finding } = await examine(env, ["--header-env", "X-Api-Key: $KEY"]);
  expect([exitCode, finding("entity-tag")?.found]).toEqual([0, `strong: ${server.all()[0]?.tag}`]);
});

test.each([
  ["weakenTags", faults.weakenTags(), "entity-tag", "bad", 1, "weak"],
  ["stripTags", faults.stripTags(), "entity-tag", "bad", 1, "none arrives"],
  ["weakenTagsOfCompressed", faults.weakenTagsOfCompressed(), "entity-tag with gzip", "warning", 0, "W/"],
  ["a cache", cached(), "freshness", "bad", 1, "120 s old"],
] as const)(
  "%s is found on the way, with the line that fixes it",
  async (_, fault, check, verdict, exitCode, found) => {
    const { env } = await place(fault);
    const run = await examine(env);
    expect(run.finding(check)).toMatchObject({
      verdict,
      found: expect.stringContaining(found),
      fix: expect.any(String),
    });
    expect(run.exitCode).toBe(exitCode);
  },
);

function cached(): Fault {
  return async (exchange) => {
    const reply = await exchange.forward();
    exchange.answer({ ...reply, headers: { ...reply.headers, age: "120" } });
  };
}

const page = (status: number, headers: Record<string, string>, body: string) => () =>
  new Response(body, { status, headers });
/** 503 to each first request; the second, which repeats it, gets no answer within the time. */
function fallsSilent() {
  let requests = 0;
  return () => {
    requests += 1;
    return requests % 2 === 1 ? new Response(null, { status: 503 }) : new Promise<never>(() => {});
  };
}
const HTML = { "content-type": "text/html" };

test.each<[string, () => Response | Promise<Response>, number, string]>([
  ["a server that falls silent", fallsSilent(), 7, "503"],
  ["a login page", page(200, HTML, "<html>Sign in</html>"), 1, "a web page"],
  ["a redirect", page(302, { location: "/login" }, ""), 1, "redirects"],
  ["too many requests", page(429, {}, ""), 7, "429"],
  ["a server that always fails", page(500, {}, ""), 7, "500"],
  ["a server that does not serve now", page(503, {}, ""), 7, "503"],
  ["another service", page(200, { "content-type": "application/json" }, '{"hello":"world"}'), 1, "no array"],
  ["a service without lists", page(404, {}, ""), 1, "404"],
])("%s is not called sound: doctor ends as list and get do", async (_, answer, exitCode, words) => {
  const server = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: answer });
  stops.push(() => server.stop(true));
  const env = { CUSTOMERS_URL: `http://127.0.0.1:${server.port}`, CUSTOMERS_TOKEN: TOKEN };
  const run = await examine(env, ["--timeout", "1"]);
  expect(run.exitCode).toBe(exitCode);
  expect(run.finding("service")).toMatchObject({ verdict: "bad", found: expect.stringContaining(words) });
  const list = await runClient(["list", "--timeout", "1"], { env });
  expect(list.exitCode).toBe(exitCode);
  const id = "00000000-0000-4000-8000-000000000001";
  const [byId, get] = [
    await examine(env, [id, "--timeout", "1"]),
    await runClient(["get", id, "--timeout", "1"], { env }),
  ];
  // To get, 404 says that there is no such customer; doctor finds that there is no such service.
  expect(byId.exitCode).toBe(get.exitCode === 4 ? 1 : get.exitCode);
});

test("the environment's proxy is the way that is examined, and its name is looked up there", async () => {
  const { server, env } = await place();
  const proxy = await startForwardProxy();
  stops.push(proxy.stop);
  const { exitCode, finding } = await examine({
    ...env,
    CUSTOMERS_URL: server.url.replace("127.0.0.1", "127.0.0.1.nip.invalid"),
    http_proxy: proxy.url,
  });
  expect([exitCode, finding("name")]).toEqual([7, undefined]);
  expect(finding("settings")?.found).toContain(`through the proxy ${new URL(proxy.url).host} (http_proxy)`);
  expect(proxy.seen.length).toBeGreaterThan(0);
});

test("wrong credentials end with exit 3, a server that is gone with exit 7", async () => {
  const { env } = await place();
  const refused = await examine({ ...env, CUSTOMERS_TOKEN: "cst_wrong" });
  expect([refused.exitCode, refused.finding("credentials")?.verdict]).toEqual([3, "bad"]);
  const gone = await examine({ ...env, CUSTOMERS_URL: NOBODY_THERE });
  expect([gone.exitCode, gone.finding("connection")?.verdict]).toEqual([7, "bad"]);
  const unknown = await examine({
    ...env,
    CUSTOMERS_URL: `http://${"label-past-63-characters".repeat(3)}.test`,
  });
  expect([unknown.exitCode, unknown.finding("name")?.verdict]).toEqual([7, "bad"]);
});

test("a private authority is named as what is missing, and --cacert fixes it, through a proxy too", async () => {
  const { server, env } = await place();
  const front = await startTlsFront(server.url);
  const proxy = await startForwardProxy();
  using directory = temporaryDirectory();
  stops.push(front.stop, proxy.stop);
  const secure = { ...env, CUSTOMERS_URL: front.url };
  const untrusted = await examine(secure);
  expect([untrusted.exitCode, untrusted.finding("connection")?.fix]).toEqual([
    7,
    expect.stringContaining("--cacert"),
  ]);
  const ca = join(directory.path, "ca.pem");
  writeFileSync(ca, front.ca);
  expect((await examine(secure, ["--cacert", ca])).exitCode).toBe(0);
  expect((await examine(secure, ["--cacert", ca, "--proxy", proxy.url])).exitCode).toBe(0);
  expect(proxy.seen[0]).toBe(`CONNECT ${new URL(front.url).host}`);
});

test("where the list names no customer, an id is asked for", async () => {
  const server = startCustomerServer();
  stops.push(server.stop);
  const env = { CUSTOMERS_URL: server.url, CUSTOMERS_TOKEN: TOKEN };
  const empty = await examine(env);
  expect([empty.exitCode, empty.finding("entity-tag")?.fix]).toEqual([0, "customers doctor ID"]);
  const { id } = server.add({});
  expect((await examine(env, [id])).finding("entity-tag")?.verdict).toBe("ok");
  expect((await examine(env, ["none"])).exitCode).toBe(4);
});

test("a clock that is off by more than a minute is a warning", () => {
  const date = "Fri, 01 Jan 2027 00:00:00 GMT";
  const serverMs = Date.parse(date);
  expect(judgeClock(date, serverMs + 30_000).verdict).toBe("ok");
  expect(judgeClock(date, serverMs + 90_000)).toMatchObject({
    verdict: "warning",
    found: expect.stringContaining("90 s ahead"),
  });
  expect(judgeClock(date, serverMs - 90_000)).toMatchObject({
    found: expect.stringContaining("90 s behind"),
  });
  expect(judgeClock(undefined, serverMs).verdict).toBe("ok");
});
