import { afterAll, expect, test } from "bun:test";
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { runClient, temporaryDirectory } from "./support/client.ts";
import { startCustomerServer } from "./support/customer-server.ts";
import { OURS, TOKEN } from "./support/dialect.ts";
import { compiledClient } from "./support/executable.ts";
import * as faults from "./support/faults.ts";
import { startFaultyProxy } from "./support/faulty-proxy.ts";

const command = [await compiledClient()];

const stops: (() => unknown)[] = [];
afterAll(async () => {
  for (const stop of stops.reverse()) await stop();
});

function place(customers: number, dialect = OURS) {
  const server = startCustomerServer(dialect);
  const directory = temporaryDirectory();
  stops.push(server.stop, directory[Symbol.dispose].bind(directory));
  for (let at = 0; at < customers; at += 1)
    server.add({ name: `Customer ${at}`, email: `c${at}@example.com` });
  return { server, directory: directory.path, env: { CUSTOMERS_URL: server.url, CUSTOMERS_TOKEN: TOKEN } };
}

/** Runs a pipeline of the shell, with the client as `customers`. */
async function pipeline(line: string, env: Record<string, string>) {
  const customers = command.map((word) => `'${word}'`).join(" ");
  const child = Bun.spawn(["bash", "-c", `customers() { ${customers} "$@"; }; ${line}`], {
    env: { PATH: process.env["PATH"] ?? "", HOME: "/nonexistent", ...env },
    stdout: "pipe",
    stderr: "pipe",
  });
  return {
    stdout: await child.stdout.text(),
    stderr: await child.stderr.text(),
    exitCode: await child.exited,
  };
}

test("every page is streamed, each customer once, in the server's own words", async () => {
  const extraMembers = '"balance":9007199254740993,"rate":1.10';
  const { server, env } = place(1234, {
    ...OURS,
    defaultFields: ["id", "name", "email", "status"],
    extraMembers,
  });
  const run = await runClient(["export"], { env });
  expect(run.exitCode).toBe(0);
  const lines = run.stdout.trimEnd().split("\n");
  expect(lines).toHaveLength(1234);
  expect(lines[7]).toEndWith(
    '"name":"Customer 7","email":"c7@example.com","status":"active","balance":9007199254740993,"rate":1.10}',
  );
  expect(server.requests.map(({ path }) => path).slice(-2)).toEqual([
    "/customers?limit=500&cursor=500",
    "/customers?limit=500&cursor=1000",
  ]);
});

test("fields that the server does not show by itself are exported too, where the credentials may read them", async () => {
  const { env } = place(2);
  const { stdout } = await runClient(["export", "--format", "csv"], { env });
  expect(stdout).toMatch(/^id,name,email,status\n[^\n]+,active\n[^\n]+,active\n$/);
  const extra = place(1, { ...OURS, extraMembers: '"balance":1' });
  const run = await runClient(["export", "--format", "csv"], { env: extra.env });
  expect(run.stdout).toStartWith("id,name,email,balance\n");
  expect(run.stderr).toContain("does not show status unless asked");
});

test("of the fields that are missing, those are exported that a role may read", async () => {
  const { server, env } = place(2, { ...OURS, defaultFields: ["id", "name"] });
  const proxy = await startFaultyProxy(server.url, async (exchange) => {
    const forbidden = exchange.path.includes("email");
    exchange.answer(
      forbidden ? { status: 403, headers: {}, body: new Uint8Array() } : await exchange.forward(),
    );
  });
  stops.push(proxy.stop);
  const run = await runClient(["export", "--format", "csv"], { env: { ...env, CUSTOMERS_URL: proxy.url } });
  expect([run.exitCode, run.stdout.split("\n")[0], run.stderr]).toEqual([
    0,
    "id,name,status",
    "2 customers exported\n",
  ]);
});

test("10 MB arrive whole through a pipe", async () => {
  const { env } = place(1000, { ...OURS, extraMembers: `"note":"${"x".repeat(10_400)}"` });
  const { stdout, exitCode } = await pipeline("set -o pipefail; customers export | cat | wc -lc", env);
  const [lines, bytes] = stdout.trim().split(/\s+/).map(Number);
  expect([exitCode, lines]).toEqual([0, 1000]);
  expect(bytes).toBeGreaterThan(10 * 1024 * 1024);
});

test("a reader that has enough ends it quietly, with exit 0 on both sides, and asks for no further page", async () => {
  const { server, env } = place(5000, {
    ...OURS,
    defaultFields: ["id", "name", "email", "status"],
    extraMembers: `"note":"${"x".repeat(1000)}"`,
  });
  const run = await pipeline("set -o pipefail; customers export | head -1; echo $?", env);
  expect(run.stderr).toBe("");
  expect(run.stdout.split("\n")[0]).toContain("Customer 0");
  expect(run.stdout.trimEnd().split("\n")[1]).toBe("0");
  expect(server.requests.length).toBeLessThan(10);
});

test("a closed stdout is no crash", async () => {
  const { env } = place(3);
  const run = await pipeline("customers export >&-", env);
  expect(run.stderr).not.toContain("at ");
});

test("the file's name chooses the format; it is there when it is whole, for the operator alone", async () => {
  const { directory, env } = place(3);
  const path = join(directory, "all.csv");
  const run = await runClient(["export", path], { env });
  expect([run.exitCode, run.stdout, run.stderr]).toEqual([0, "", "3 customers exported\n"]);
  expect(readFileSync(path, "utf8")).toMatch(
    /^id,name,email,status\n[^\n]+,Customer 0,c0@example.com,active\n/,
  );
  expect(statSync(path).mode & 0o777).toBe(0o600);
  expect(readdirSync(directory)).toEqual(["all.csv"]);
});

test("an export that breaks off leaves the earlier file, and says that it is incomplete", async () => {
  const { server, directory, env } = place(1200);
  const path = join(directory, "all.ndjson");
  writeFileSync(path, "the export of yesterday");
  const proxy = await startFaultyProxy(server.url, async (exchange) => {
    if (exchange.path.includes("cursor=1000")) return exchange.cut();
    exchange.answer(await exchange.forward());
  });
  stops.push(proxy.stop);
  const run = await runClient(["export", path], { env: { ...env, CUSTOMERS_URL: proxy.url } });
  expect(run.exitCode).toBe(7);
  expect(run.stderr).toContain("incomplete, 1,000 customers written");
  expect(readFileSync(path, "utf8")).toBe("the export of yesterday");
  expect(readdirSync(directory)).toEqual(["all.ndjson"]);
});

test("what is not a plain file is written to, never replaced; a link stays a link", async () => {
  const { directory, env } = place(2);
  const { stdout } = await pipeline(
    `mkfifo '${directory}/pipe'; cat '${directory}/pipe' & customers export '${directory}/pipe'; wait`,
    env,
  );
  expect(stdout.trimEnd().split("\n")).toHaveLength(2);
  symlinkSync(join(directory, "target.csv"), join(directory, "link.csv"));
  writeFileSync(join(directory, "target.csv"), "");
  await runClient(["export", join(directory, "link.csv")], { env });
  expect(readFileSync(join(directory, "target.csv"), "utf8")).toContain("Customer 1");
});

test.each([
  ["--status", "suspended", ["B"]],
  ["--email", "c@example.com", ["C"]],
])("%s selects", async (option, value, expected) => {
  const { server, env } = place(0);
  server.add({ name: "A" });
  server.add({ name: "B", status: "suspended" });
  server.add({ name: "C", email: "c@example.com" });
  const { stdout } = await runClient(["export", option, value, "--format", "csv", "--fields", "name"], {
    env,
  });
  expect(stdout.trimEnd().split("\n")).toEqual(["name", ...expected]);
});

test("a server that allows smaller pages only is asked for pages of its own size", async () => {
  const { server, env } = place(120);
  const proxy = await startFaultyProxy(server.url, async (exchange) => {
    const reply = await exchange.forward();
    exchange.answer(
      exchange.path.includes("limit=") ? { status: 400, headers: {}, body: new Uint8Array() } : reply,
    );
  });
  stops.push(proxy.stop);
  const run = await runClient(["export"], { env: { ...env, CUSTOMERS_URL: proxy.url } });
  expect([run.exitCode, run.stdout.trimEnd().split("\n").length]).toEqual([0, 120]);
});

test("a page that breaks off or is refused with 503 is asked for again", async () => {
  const { server, env } = place(10);
  const broken = await startFaultyProxy(server.url, faults.resetMidBody());
  const busy = await startFaultyProxy(server.url, faults.answerInstead(503, { retryAfter: 0, times: 2 }));
  stops.push(broken.stop, busy.stop);
  for (const { url } of [broken, busy]) {
    const run = await runClient(["export"], { env: { ...env, CUSTOMERS_URL: url } });
    expect([run.exitCode, run.stdout.trimEnd().split("\n").length]).toEqual([0, 10]);
  }
});

test("a path that can't be written is told before anything is asked for", async () => {
  const { server, directory, env } = place(1);
  for (const path of [directory, join(directory, "no-such", "all.csv")]) {
    const run = await runClient(["export", path], { env });
    expect([run.exitCode, run.stderr.includes("can't be written"), server.requests.length]).toEqual([
      2,
      true,
      0,
    ]);
  }
});

test("formats that are no export are refused before anything is asked", async () => {
  const { server, directory, env } = place(1);
  const run = await runClient(["export", join(directory, "x"), "--output", "table"], { env });
  expect([run.exitCode, server.requests.length, existsSync(join(directory, "x"))]).toEqual([2, 0, false]);
});

test("a file that can't take the name in the end is told, and the export is kept", async () => {
  const { server, directory, env } = place(1);
  const path = join(directory, "all.csv");
  const proxy = await startFaultyProxy(server.url, async (exchange) => {
    if (!existsSync(path)) mkdirSync(join(path, "in-the-way"), { recursive: true });
    exchange.answer(await exchange.forward());
  });
  stops.push(proxy.stop);
  const { exitCode, stderr } = await runClient(["export", path], {
    env: { ...env, CUSTOMERS_URL: proxy.url },
  });
  expect(exitCode).toBe(1);
  const kept = /the export is whole, in (\S+)/.exec(stderr)?.[1] ?? "";
  expect(readFileSync(kept, "utf8")).toContain("c0@example.com");
});
