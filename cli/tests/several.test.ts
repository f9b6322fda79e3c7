/** Several customers in one command: as arguments, or from standard input. */
import { afterAll, expect, test } from "bun:test";
import { NOBODY_THERE, type RunOptions, runClient } from "./support/client.ts";
import { startCustomerServer } from "./support/customer-server.ts";
import { TOKEN } from "./support/dialect.ts";
import { startFaultyProxy } from "./support/faulty-proxy.ts";

const stops: (() => unknown)[] = [];
afterAll(async () => {
  for (const stop of stops.splice(0)) await stop();
});

const NOBODY = "00000000-0000-4000-8000-000000000000";

function place() {
  const server = startCustomerServer();
  stops.push(server.stop);
  const ids = ["A", "B", "C"].map((name) => server.add({ name }).id);
  const run = (args: string[], options: RunOptions = {}) =>
    runClient(args, { env: { CUSTOMERS_URL: server.url, CUSTOMERS_TOKEN: TOKEN }, ...options });
  return { server, ids, run, names: () => server.all().map(({ name }) => name) };
}

test("get prints several as one list, in their order, from arguments and from standard input", async () => {
  const { ids, run } = place();
  const reversed = ids.toReversed();
  const listed = await run(["get", ...reversed, "-o", "json", "--fields", "name"]);
  expect(JSON.parse(listed.stdout)).toEqual([{ name: "C" }, { name: "B" }, { name: "A" }]);
  const piped = await run(["get", "-", "-o", "value", "--fields", "name"], {
    stdin: `${ids.join("\n")}\n\n`,
  });
  expect(piped).toMatchObject({ exitCode: 0, stdout: "A\nB\nC\n" });
  const csv = await run(["get", ...ids, "-o", "csv", "--fields", "name"]);
  expect(csv.stdout).toBe("name\nA\nB\nC\n");
});

test("one id from standard input is one customer, not a list", async () => {
  const { ids, run } = place();
  const { stdout } = await run(["get", "-", "-o", "json", "--fields", "name"], { stdin: ids[0] ?? "" });
  expect(JSON.parse(stdout)).toEqual({ name: "A" });
});

test.each([
  ["get", ["-o", "value", "--fields", "name"]],
  ["update", ["--name", "New"]],
  ["delete", ["--yes"]],
])("%s of several: the failures are named, the others are done, exit 9", async (name, more) => {
  const { ids, run, names, server } = place();
  const [first = "", second = "", third = ""] = ids;
  const { exitCode, stderr, stdout } = await run([name, first, NOBODY, third, ...more]);
  expect(exitCode).toBe(9);
  expect(stderr).toContain(`customer ${NOBODY}`);
  expect(stderr).toContain("1 of 3 customers failed");
  const expected: Record<string, string[]> = {
    get: ["A", "B", "C"],
    update: ["New", "B", "New"],
    delete: ["B"],
  };
  expect(names()).toEqual(expected[name] ?? []);
  if (name === "get") expect(stdout).toBe("A\nC\n");
  expect(server.read(second)?.name).toBe("B");
});

test("several that all succeed have one summary, and exit 0", async () => {
  const { ids, run, names } = place();
  const { exitCode, stderr } = await run(["update", "-", "--status", "suspended"], { stdin: ids.join("\n") });
  expect(exitCode).toBe(0);
  expect(stderr.trimEnd().split("\n").at(-1)).toBe("3 customers updated");
  expect(names()).toEqual(["A", "B", "C"]);
});

test("what every customer would meet ends it, and names where to go on", async () => {
  const { ids } = place();
  const env = { CUSTOMERS_URL: NOBODY_THERE, CUSTOMERS_TOKEN: TOKEN };
  const { exitCode, stderr } = await runClient(["delete", ...ids, "--yes", "--timeout", "1"], { env });
  expect(exitCode).toBe(7);
  expect(stderr).toContain(`3 customers of 3 not done yet, from ${ids[0]} on`);
});

test.each([
  ["get", []],
  ["update", ["--name", "New"]],
  ["delete", ["--yes"]],
])("%s: refused credentials end it at the first, with exit 3", async (name, more) => {
  const { server, ids } = place();
  const env = { CUSTOMERS_URL: server.url, CUSTOMERS_TOKEN: "cst_wrong" };
  const { exitCode, stderr } = await runClient([name, ...ids, ...more], { env });
  expect({ exitCode, requests: server.requests.length }).toEqual({ exitCode: 3, requests: 1 });
  expect(stderr).toContain(`3 customers of 3 not done yet, from ${ids[0]} on`);
});

test.each([
  ["of the last: exit 1, and none failed", 1, 1, "3 customers updated; 1 of them could not be shown"],
  ["of the first two: exit 9, and the third is not done yet", 2, 9, "1 customer of 3 not done yet"],
])("a write whose reading is refused afterwards is done, %s", async (_, kind, exit, words) => {
  const { server, ids, names } = place();
  const [first, second, third] = ids;
  let hidden = false;
  const proxy = await startFaultyProxy(server.url, async (exchange) => {
    const reply = await exchange.forward();
    const at = ids.findIndex((id) => exchange.path.includes(id));
    if (exchange.isWrite && at === (kind === 1 ? 2 : 1)) hidden = true;
    const body = new Uint8Array();
    if (exchange.isWrite)
      exchange.answer({ status: 204, headers: { etag: reply.headers["etag"] ?? "" }, body });
    else exchange.answer(hidden ? { status: 401, headers: {}, body } : reply);
  });
  stops.push(proxy.stop);
  const env = { CUSTOMERS_URL: proxy.url, CUSTOMERS_TOKEN: TOKEN };
  const args = ["update", first ?? "", second ?? "", third ?? "", "--name", "New", "--fields", "name"];
  const { exitCode, stderr } = await runClient(args, { env });
  expect(exitCode).toBe(exit);
  expect(stderr).toContain("the write is done, but");
  expect(stderr).toContain(words);
  expect(stderr).not.toContain("failed");
  expect(names()).toEqual(kind === 1 ? ["New", "New", "New"] : ["New", "New", "C"]);
});

test("an unknown outcome among several is not called a failure: exit 8", async () => {
  const { server, ids } = place();
  const proxy = await startFaultyProxy(server.url, async (exchange) => {
    const reply = await exchange.forward();
    const isLost = exchange.isWrite && exchange.path.includes(ids[1] ?? "");
    exchange.answer(isLost ? { ...reply, status: 207 } : reply);
  });
  stops.push(proxy.stop);
  const env = { CUSTOMERS_URL: proxy.url, CUSTOMERS_TOKEN: TOKEN };
  const args = ["update", ...ids, "--name", "New", "--expect", "status=active", "--max-attempts", "1"];
  const { exitCode, stderr } = await runClient([...args, "--status", "closed"], { env });
  expect(exitCode).toBe(8);
  expect(stderr).toContain("1 of 3 customers with an unknown outcome");
});

test("the server goes after the first of several: not exit 7, which says that nothing was written", async () => {
  const { server, ids } = place();
  const proxy = await startFaultyProxy(server.url, async (exchange) => {
    if (exchange.path.includes(ids[0] ?? "")) return exchange.answer(await exchange.forward());
    exchange.cut();
  });
  stops.push(proxy.stop);
  const env = { CUSTOMERS_URL: proxy.url, CUSTOMERS_TOKEN: TOKEN };
  const { exitCode, stderr } = await runClient(["delete", ...ids, "--yes", "--timeout", "1"], { env });
  expect(exitCode).toBe(9);
  expect(stderr).toContain(`2 customers of 3 not done yet, from ${ids[1]} on`);
});

test.each([
  ["--if-match with several", ["update", "ID", "ID", "--name", "x", "--if-match", '"1"'], ""],
  ["no id on standard input", ["delete", "-", "--yes"], "\n"],
  ["an empty id among others", ["get", "ID", " "], ""],
  ["a token and ids on standard input", ["get", "-", "--token-stdin"], "x"],
  ["several deletions without --yes", ["delete", "ID", "ID"], ""],
])("%s: exit 2, and nothing is sent", async (_, args, stdin) => {
  const { server, ids, run } = place();
  const words = args.map((word) => (word === "ID" ? (ids[0] ?? "") : word));
  expect([(await run(words, { stdin })).exitCode, server.requests]).toEqual([2, []]);
});
