/** What counts as a customer service, and as an answer about the customer that was asked for: the same for every command. */
import { afterAll, describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { runClient, temporaryDirectory } from "./support/client.ts";
import { startCustomerServer } from "./support/customer-server.ts";
import { OURS, TOKEN, UNLIKE_OURS } from "./support/dialect.ts";
import { type Fault, startFaultyProxy } from "./support/faulty-proxy.ts";

const stops: (() => unknown)[] = [];
afterAll(async () => {
  for (const stop of stops.reverse()) await stop();
});

const ID = "0193aaaa-0000-7000-8000-000000000001";
const NOTHING = '{"error":"nothing here"}';
const json = (status: number, body: string) => () =>
  new Response(body, { status, headers: { "content-type": "application/json" } });

describe.each<[string, (request: Request) => Response]>([
  ["404 and JSON to everything", json(404, NOTHING)],
  ["404 and nothing", () => new Response(null, { status: 404 })],
  ["a JSON object", json(200, '{"hello":"world"}')],
  ["an empty array", json(200, "[]")],
  ["an object with an array of texts", json(200, '{"errors":["no such route"]}')],
  ["400 to everything", json(400, NOTHING)],
  ["204", () => new Response(null, { status: 204 })],
  ["a web page", () => new Response("<p>Hello", { headers: { "content-type": "text/html" } })],
])("a server that answers with %s is no customer service", (_, fetch) => {
  const server = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch });
  stops.push(() => server.stop(true));
  const url = `http://127.0.0.1:${server.port}`;
  const env = { CUSTOMERS_URL: url, CUSTOMERS_TOKEN: TOKEN };

  test("login stores nothing, whoami and doctor say so", async () => {
    using home = temporaryDirectory();
    const login = await runClient(["login", "--url", url], { home: home.path, stdin: TOKEN });
    const runs = [login, await runClient(["whoami"], { env }), await runClient(["doctor"], { env })];
    expect(runs.map(({ exitCode }) => exitCode === 0)).toEqual([false, false, false]);
    expect(login.stderr).toContain(`Check that ${url} is the base URL of a customer service`);
    expect(await Bun.file(join(home.path, ".config/customers/config.toml")).exists()).toBe(false);
  });

  test("get and update take no answer of it for a customer", async () => {
    for (const args of [
      ["get", ID],
      ["get", ID, "--fields", "name"],
      ["update", ID, "--name", "Eve"],
    ]) {
      const { exitCode, stdout } = await runClient(args, { env });
      expect({ ok: exitCode === 0, stdout }).toEqual({ ok: false, stdout: "" });
    }
  });
});

test.each([
  ["get", []],
  ["update", ["--name", "Eve"]],
  ["delete", ["--yes"]],
  ["watch", []],
  ["history", []],
])("under a wrong base URL %s %j does not say that the customer does not exist", async (command, args) => {
  const server = startCustomerServer();
  stops.push(server.stop);
  const { id } = server.add({});
  const env = { CUSTOMERS_URL: `${server.url}/v9`, CUSTOMERS_TOKEN: TOKEN };
  const { exitCode, stderr } = await runClient([command, id, ...args], { env });
  expect(exitCode).toBe(1);
  expect(stderr).toContain("404, also to a field that does not exist");
  const missing = await runClient([command, ID, ...args], { env: { ...env, CUSTOMERS_URL: server.url } });
  expect(missing.exitCode).toBe(4);
});

test("under a wrong base URL an import stops at its first row", async () => {
  const server = startCustomerServer();
  stops.push(server.stop);
  const rows = [1, 2, 3].map((n) => `${ID.slice(0, -1)}${n},New`);
  const env = { CUSTOMERS_URL: `${server.url}/v9`, CUSTOMERS_TOKEN: TOKEN };
  const args = ["import", "-", "--concurrency", "1"];
  const { exitCode, stderr } = await runClient(args, { env, stdin: ["id,name", ...rows].join("\n") });
  expect(exitCode).toBe(1);
  expect(stderr).toContain("3 rows not done yet");
});

test("a gateway that answers 404 after a lost deletion does not show that the customer is gone", async () => {
  const server = startCustomerServer();
  let lost = false;
  const proxy = await startFaultyProxy(server.url, async (exchange) => {
    if (lost) return exchange.answer({ status: 404, headers: {}, body: new Uint8Array() });
    if (!exchange.isWrite) return exchange.answer(await exchange.forward());
    lost = true;
    exchange.answer({ status: 502, headers: {}, body: new Uint8Array() });
  });
  stops.push(server.stop, proxy.stop);
  const { id } = server.add({});
  const env = { CUSTOMERS_URL: proxy.url, CUSTOMERS_TOKEN: TOKEN };
  expect((await runClient(["delete", id, "--yes"], { env })).exitCode).toBe(8);
  expect(server.read(id)).toBeDefined();
});

test("every command words a web page alike", async () => {
  const fetch = () => new Response("<p>Sign in", { headers: { "content-type": "text/html" } });
  const server = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch });
  stops.push(() => server.stop(true));
  const env = { CUSTOMERS_URL: `http://127.0.0.1:${server.port}`, CUSTOMERS_TOKEN: TOKEN };
  for (const args of [
    ["get", ID],
    ["list"],
    ["whoami"],
    ["doctor"],
    ["doctor", ID],
    ["update", ID, "--name", "x"],
  ])
    expect((await runClient(args, { env })).stderr).toContain("a web page, not one of a customer service");
});

/** A sound server whose replies to readings are changed. */
async function changed(change: (body: Record<string, unknown>, path: string) => object, dialect = OURS) {
  const server = startCustomerServer(dialect);
  const fault: Fault = async (exchange) => {
    const reply = await exchange.forward();
    if (exchange.method !== "GET" || reply.status !== 200) return exchange.answer(reply);
    const body = change(JSON.parse(Buffer.from(reply.body).toString()), exchange.path);
    exchange.answer({ ...reply, body: Buffer.from(JSON.stringify(body)) });
  };
  const proxy = await startFaultyProxy(server.url, fault);
  stops.push(server.stop, proxy.stop);
  const env = { CUSTOMERS_URL: proxy.url, CUSTOMERS_TOKEN: TOKEN };
  return { server, customer: server.add({}), run: (...args: string[]) => runClient(args, { env }) };
}

test.each([
  ["get", []],
  ["get", ["--fields", "name"]],
  ["update", ["--name", "Eve"]],
  ["delete", ["--yes"]],
])("%s %j believes no answer without the id of the customer", async (command, args) => {
  const { server, customer, run } = await changed(({ id: _, ...others }) => others);
  const { exitCode, stdout, stderr } = await run(command, customer.id, ...args);
  expect({ exitCode, stdout, writes: server.writes }).toEqual({ exitCode: 1, stdout: "", writes: [] });
  expect(stderr).toContain("the answer shows no id");
});

test("get --fields believes no answer that shows another customer", async () => {
  const { customer, run } = await changed((body) => ({ ...body, id: ID }));
  const { exitCode, stderr } = await run("get", customer.id, "--fields", "name");
  expect(exitCode).toBe(1);
  expect(stderr).toContain(`the server answered with customer ${ID}`);
});

test("a default set without the id is proven by a second reading", async () => {
  const bare = { ...OURS, defaultFields: ["name", "email"] as const };
  const { customer, run } = await changed((body) => body, { ...bare, defaultFields: ["name", "email"] });
  const { exitCode, stdout } = await run("get", customer.id);
  expect({ exitCode, stdout: JSON.parse(stdout) }).toEqual({
    exitCode: 0,
    stdout: { name: "Ada Lovelace", email: "ada@example.com" },
  });
});

test.each([403, 400, 422])(
  "credentials that may not read the id (%d) do without the proof",
  async (status) => {
    const server = startCustomerServer();
    const { id } = server.add({});
    const proxy = await startFaultyProxy(server.url, async (exchange) => {
      const hidden = /fields=[^&]*\bid\b/.test(exchange.path);
      if (hidden) return exchange.answer({ status, headers: {}, body: new Uint8Array() });
      const reply = await exchange.forward();
      const body = Buffer.from(
        Buffer.from(reply.body)
          .toString()
          .replace(/"id":"[^"]*",?/, ""),
      );
      exchange.answer({ ...reply, body });
    });
    stops.push(server.stop, proxy.stop);
    const env = { CUSTOMERS_URL: proxy.url, CUSTOMERS_TOKEN: TOKEN };
    const named = await runClient(["get", id, "--fields", "name"], { env });
    expect(named).toMatchObject({ exitCode: 0, stdout: '{"name":"Ada Lovelace"}\n' });
    const whole = await runClient(["get", id], { env });
    expect({ ...whole, stdout: JSON.parse(whole.stdout) }).toMatchObject({
      stdout: { name: "Ada Lovelace" },
    });
    expect(await runClient(["update", id, "--name", "Eve"], { env })).toMatchObject({ exitCode: 0 });
    expect(server.read(id)?.name).toBe("Eve");
  },
);

describe("a base URL that ends in /customers", () => {
  const nested = { ...UNLIKE_OURS, basePath: "/customers", credentials: OURS.credentials };
  test.each([
    ["of the collection is stripped", OURS, "/customers"],
    ["is stripped once, by login and by every command alike", nested, "/customers"],
  ])("%s", async (_, dialect, end) => {
    using home = temporaryDirectory();
    const server = startCustomerServer(dialect);
    stops.push(server.stop);
    const { id } = server.add({});
    const given = server.url + end;
    const customers = (...args: string[]) => runClient(args, { home: home.path, stdin: TOKEN });
    expect(await customers("login", "--url", given)).toMatchObject({ exitCode: 0 });
    expect(readFileSync(join(home.path, ".config/customers/config.toml"), "utf8")).toContain(given);
    expect(await customers("profile", "set", "p", "--url", given)).toMatchObject({ exitCode: 0 });
    for (const args of [
      ["get", id],
      ["login"],
      ["get", id, "--url", given],
      ["get", id, "--profile", "default"],
    ])
      expect(await customers(...args)).toMatchObject({ exitCode: 0 });
    const shown = await customers("profile", "show", "p", "--output", "json");
    expect(JSON.parse(shown.stdout).url).toBe(given);
  });
});
