/** Each row of the table, provoked for real. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { EXIT_CODES, type Exit } from "../outcome/exit-code.ts";
import {
  NOBODY_THERE,
  type RunOptions,
  runClient as run,
  spawnClient,
  temporaryDirectory,
} from "./support/client.ts";
import { type CustomerServer, startCustomerServer } from "./support/customer-server.ts";
import { TOKEN } from "./support/dialect.ts";
import { compiledClient } from "./support/executable.ts";
import * as faults from "./support/faults.ts";
import { type Fault, startFaultyProxy } from "./support/faulty-proxy.ts";

let command: string[];
const runClient = (args: string[], options: RunOptions) => run(args, { command, ...options });
let server: CustomerServer;
let id: string;
beforeAll(async () => {
  command = [await compiledClient()];
  server = startCustomerServer();
  id = server.add({ name: "Ada" }).id;
});
afterAll(() => server.stop());

const env = (url = server.url) => ({ CUSTOMERS_URL: url, CUSTOMERS_TOKEN: TOKEN });
const exitOf = async (...args: string[]) => (await runClient(args, { env: env() })).exitCode;

async function behind(fault: Fault, args: string[], client = runClient): Promise<number> {
  const proxy = await startFaultyProxy(server.url, fault);
  const { exitCode } = await client(args, { env: env(proxy.url) });
  await proxy.stop();
  return exitCode;
}

const PROVOKED: Record<Exit, () => Promise<number>> = {
  done: () => exitOf("get", id),
  // A weak tag: known to be written by nobody, and none of the other reasons.
  failure: () => behind(faults.weakenTags(), ["update", id, "--name", "Eve"]),
  usage: () => exitOf("update", id),
  "not-allowed": async () =>
    (await runClient(["get", id], { env: { ...env(), CUSTOMERS_TOKEN: "unknown-token" } })).exitCode,
  "not-found": () => exitOf("get", "00000000-0000-4000-8000-000000000000"),
  conflict: () => exitOf("update", id, "--name", "Eve", "--if-match", '"another"'),
  invalid: () => exitOf("get", id, "--fields", "nam"),
  unreachable: () => exitOf("get", id, "--url", NOBODY_THERE),
  "unknown-outcome": () =>
    behind(faults.dropReplies(), ["create", "--name", "Eve", "--email", "eve@example.com"]),
  "rows-failed": async () => {
    using directory = temporaryDirectory();
    const rows = join(directory.path, "rows.csv");
    writeFileSync(rows, "name,email\nAda,ada@example.com\nEve,not an address\n");
    return (await runClient(["import", rows], { env: env(), cwd: directory.path })).exitCode;
  },
  interrupted: async () => {
    const arrived = Promise.withResolvers<void>();
    const proxy = await startFaultyProxy(server.url, () => arrived.resolve());
    const child = spawnClient(["get", id], { env: env(proxy.url), command });
    await arrived.promise;
    child.kill("SIGINT");
    const exitCode = await child.exited;
    await proxy.stop();
    return exitCode;
  },
};

test.each(Object.keys(EXIT_CODES) as Exit[])("%s", async (exit) => {
  expect(await PROVOKED[exit]()).toBe(EXIT_CODES[exit].code);
});

test("the codes are all different", () => {
  const codes = Object.values(EXIT_CODES).map(({ code }) => code);
  expect(new Set(codes).size).toBe(codes.length);
});

test("8 says that create is safe to run again with the key that its message names, and it is", async () => {
  const { meaning } = EXIT_CODES["unknown-outcome"];
  expect(meaning).toContain("for create with the --idempotency-key that the message names");
  const create = ["create", "--name", "Eve", "--email", "again@example.com"];
  const proxy = await startFaultyProxy(server.url, faults.dropReplies());
  const lost = await run(create, { env: env(proxy.url) });
  await proxy.stop();
  const [, key = ""] = /--idempotency-key (\S+):/.exec(lost.stderr) ?? [];
  expect([lost.exitCode, await exitOf(...create, "--idempotency-key", key)]).toEqual([8, 0]);
  const made = () => server.all().filter(({ email }) => email === "again@example.com").length;
  expect(made()).toBe(1);
  // Another run draws another key.
  expect([await exitOf(...create), made()]).toEqual([0, 2]);
});

test.each([
  ["401", 401, 3],
  ["403", 403, 3],
  ["410", 410, 4],
  ["400", 400, 6],
  ["422", 422, 6],
  ["428", 428, 6],
  ["409", 409, 1],
  ["a redirect", 302, 1],
  ["500 to a read", 500, 7],
])("%s", async (_, status, code) => {
  // The codes themselves were those of processes above.
  // A customer service refuses a field that does not exist in another way than a customer that is gone.
  const times = status === 410 ? 1 : 9;
  expect(await behind(faults.answerInstead(status, { times }), ["get", id], run)).toBe(code);
  // 410 to a write alone contradicts the reading, and is reported as that.
  if (status < 500 && status !== 410) {
    const refusing = faults.answerInstead(status, { which: "writes" });
    expect(await behind(refusing, ["update", id, "--name", "Eve"], run)).toBe(code);
  }
});
