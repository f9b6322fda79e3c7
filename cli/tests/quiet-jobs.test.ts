/** What a job without a terminal prints: nothing where all went well, so that cron sends no mail. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { type RunOptions, runClient, runOnTerminal, temporaryDirectory } from "./support/client.ts";
import { startCustomerServer } from "./support/customer-server.ts";
import { TOKEN } from "./support/dialect.ts";
import { compiledClient } from "./support/executable.ts";

let command: string[];
beforeAll(async () => {
  command = [await compiledClient()];
});
const stops: (() => unknown)[] = [];
afterAll(async () => {
  for (const stop of stops.splice(0)) await stop();
});

function place(customers: number) {
  const server = startCustomerServer();
  const directory = temporaryDirectory();
  stops.push(server.stop, () => directory[Symbol.dispose]());
  for (let at = 0; at < customers; at += 1) server.add({ email: `c${at}@example.com` });
  const env = { CUSTOMERS_URL: server.url, CUSTOMERS_TOKEN: TOKEN, CUSTOMERS_NOTES: "" };
  const run = (args: string[], options: RunOptions & { home?: string } = {}) =>
    runClient(args, { ...options, env: { ...env, ...options.env } });
  return { server, env, directory: directory.path, run, id: server.all()[0]?.id ?? "" };
}

describe("without a terminal", () => {
  test.each<[string, (at: ReturnType<typeof place>) => string[]]>([
    ["update", ({ id }) => ["update", id, "--name", "New"]],
    ["create", () => ["create", "--name", "N", "--email", "n@example.com"]],
    ["delete", ({ id }) => ["delete", id, "--yes"]],
    ["export", ({ directory }) => ["export", join(directory, "all.csv")]],
    ["list", () => ["list"]],
    ["list with a limit", () => ["list", "--limit", "1"]],
    [
      "import",
      ({ directory }) => {
        writeFileSync(join(directory, "in.csv"), "name,email\nA,a@example.com\n");
        return ["import", join(directory, "in.csv")];
      },
    ],
  ])("%s prints nothing on standard error; a summary with --verbose or CUSTOMERS_NOTES", async (_, args) => {
    const first = place(2);
    expect(await first.run(args(first))).toMatchObject({ exitCode: 0, stderr: "" });
    if (args(first)[0] === "list") return;
    const second = place(2);
    const noted = await second.run(args(second), { env: { CUSTOMERS_NOTES: "always" } });
    expect([noted.exitCode, noted.stderr.trimEnd().split("\n").length]).toEqual([0, 1]);
  });

  test("a list that the default limit cuts off warns, even with --quiet; one with --limit does not", async () => {
    const { run } = place(51);
    for (const more of [[], ["-q"]]) {
      const { stderr, exitCode } = await run(["list", ...more]);
      expect([exitCode, stderr]).toEqual([
        0,
        "warning: only the first 50 customers are shown; --all shows every one\n",
      ]);
    }
    expect((await run(["list", "--limit", "50"])).stderr).toBe("");
  });

  test.each([
    ["where no server is set", ["list"]],
    [
      "where the profile file is what the command is about",
      ["profile", "show", "no-such-profile", "--url", "http://127.0.0.1:1"],
    ],
  ])("HOME that is not set is named %s", async (_, args) => {
    const child = Bun.spawn([...command, ...args], { env: {}, stdout: "ignore", stderr: "pipe" });
    const stderr = await child.stderr.text();
    expect(await child.exited).toBe(2);
    expect(stderr).toContain("HOME is not set, so profiles are looked for in ");
  });
});

describe("of nothing", () => {
  test("a CSV export has its header, and is imported again", async () => {
    const { run, directory } = place(0);
    const file = join(directory, "all.csv");
    expect((await run(["export", file])).exitCode).toBe(0);
    expect(await Bun.file(file).text()).toBe("id,name,email,status\n");
    expect(await run(["import", file])).toMatchObject({ exitCode: 0 });
    expect((await run(["list", "-o", "csv", "--fields", "id,email", "--with-etag"])).stdout).toBe(
      "etag,id,email\n",
    );
  });

  test("a list says so on a terminal", async () => {
    const { env } = place(0);
    const { screen, exitCode } = await runOnTerminal(["list"], { command, env });
    expect([exitCode, screen.trim()]).toEqual([0, "No customers."]);
  });
});

test.each([
  ["all.xlsx", 2],
  ["all.txt", 2],
  ["all.JSONL", 0],
  ["all", 0],
])("export to %s: exit %d", async (name, exitCode) => {
  const { run, directory, server } = place(1);
  const ended = await run(["export", join(directory, name)]);
  expect([ended.exitCode, server.requests.length > 0]).toEqual([exitCode, exitCode === 0]);
});

test("lists ask for compression, a reading that needs the ETag header does not", async () => {
  const { run, server, id } = place(1);
  await run(["list"]);
  await run(["get", id]);
  expect(server.requests.map(({ headers }) => headers["accept-encoding"])).toEqual([
    expect.stringContaining("gzip"),
    "identity",
  ]);
});
