/** What surrounds every command: usage errors, suggestions, errors as JSON, interruption, prompts. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import {
  NOBODY_THERE,
  type RunOptions,
  runClient as run,
  runOnTerminal,
  spawnClient,
  temporaryDirectory,
} from "./support/client.ts";
import { type CustomerServer, startCustomerServer } from "./support/customer-server.ts";
import { TOKEN } from "./support/dialect.ts";
import { compiledClient } from "./support/executable.ts";
import { startFaultyProxy } from "./support/faulty-proxy.ts";

let command: string[];
let server: CustomerServer;
const env = (url = server.url) => ({ CUSTOMERS_URL: url, CUSTOMERS_TOKEN: TOKEN });
const runClient = (args: string[], options: RunOptions & { home?: string } = {}) =>
  run(args, { env: env(), ...options });
beforeAll(async () => {
  command = [await compiledClient()];
  server = startCustomerServer();
});
afterAll(() => server.stop());

describe("a usage error is exit 2, sends nothing, and suggests", () => {
  test.each([
    ["a command", ["gte", "1"], "Did you mean get?"],
    ["a subcommand", ["profile", "lst"], "Did you mean list?"],
    ["an option", ["update", "1", "--nmae", "x"], "Did you mean --name?"],
    ["the command's own help", ["update", "1", "--nmae", "x"], "See: customers update --help"],
    ["a subcommand's own help", ["profile", "set", "x", "--prot"], "See: customers profile set --help"],
    ["a global option", ["get", "1", "--verbos"], "Did you mean --verbose?"],
    ["a choice", ["update", "1", "--name", "x", "--on-conflict", "merg"], "reapply, merge, fail"],
    ["no subcommand", ["profile"], "a subcommand is missing"],
    ["no id", ["get"], "missing required argument 'id'"],
    ["an empty id", ["get", ""], "the customer id is empty"],
    ["too many arguments", ["list", "1"], "too many arguments"],
    ["nothing to change", ["update", "1"], "nothing to change"],
    ["no time", ["get", "1", "--timeout", "soon"], "Give seconds"],
    ["no number", ["list", "--limit", "0"], "must be a positive integer"],
    [
      "two tokens",
      ["list", "--token-stdin", "--token-file", "x"],
      "cannot be used with option '--token-file",
    ],
    ["two ways to go on", ["import", "x", "--resume", "--restart"], "cannot be used with option '--resume'"],
    [
      "a result and a tag",
      ["update", "1", "--result", "--with-etag"],
      "cannot be used with option '--with-etag'",
    ],
    ["no expectation", ["update", "1", "--name", "x", "--expect", "name"], "FIELD=VALUE"],
    ["a tag without its quotes", ["get", "1", "--if-none-match", "abc"], "double quotes"],
    [
      "a tag that no header can carry",
      ["update", "1", "--name", "x", "--if-match", '"漢"'],
      "no entity-tag has",
    ],
    ["no key", ["create", "--name", "x", "--email", "y", "--idempotency-key", "a b"], "visible ASCII"],
  ])("%s", async (_, args, words) => {
    const before = server.requests.length;
    const { exitCode, stdout, stderr } = await runClient(args);
    expect({ exitCode, stdout, requests: server.requests.length }).toEqual({
      exitCode: 2,
      stdout: "",
      requests: before,
    });
    expect(stderr).toContain(words);
  });

  test("nothing at all prints the help on stderr", async () => {
    const { exitCode, stdout, stderr } = await runClient([]);
    expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: "" });
    expect(stderr).toContain("Usage: customers");
  });
});

test("--help and --version are data, on stdout, and need no profile file that can be read", async () => {
  using home = temporaryDirectory();
  await Bun.write(join(home.path, ".config", "customers", "config.toml"), "not = [toml");
  for (const args of [["--help"], ["get", "--help"], ["--version"], ["help"], ["help", "conflicts"]]) {
    const { exitCode, stdout, stderr } = await runClient(args, { home: home.path });
    expect({ args, exitCode, stderr }).toEqual({ args, exitCode: 0, stderr: "" });
    expect(stdout).not.toBe("");
  }
});

describe("an error with --output json is one JSON object on stderr", () => {
  const { id } = { id: "00000000-0000-4000-8000-000000000000" };
  test.each([
    [
      "of usage",
      ["update", id, "-o", "json"],
      { code: "usage", exitCode: 2, requestId: null, problem: null },
    ],
    ["of the server", ["get", id, "-o", "json"], { code: "customer-not-found", exitCode: 4 }],
    ["of the way", ["get", id, "-o", "ndjson", "--url", NOBODY_THERE], { code: "unreachable", exitCode: 7 }],
  ])("%s", async (_, args, members) => {
    const { stderr, stdout } = await runClient(args);
    expect(stdout).toBe("");
    const error = JSON.parse(stderr);
    expect(error).toMatchObject(members);
    expect(Object.keys(error).filter((name) => name !== "warnings")).toEqual([
      "code",
      "message",
      "hint",
      "requestId",
      "exitCode",
      "details",
      "problem",
    ]);
    expect(error.hint).toBeString();
  });

  test.each([
    [["get", id, "--timeout", "x", "--output", "json"]],
    [["get", id, "--timeout", "x", "--output=json"]],
    [["get", id, "--timeout", "x", "-o", "ndjson"]],
    [["get", id, "--timeout", "x", "-ojson"]],
    [["get", id, "--bogus", "-qojson"]],
    [["-ojson", "get", id, "--timeout", "x"]],
    [["gte", id, "-ojson"]],
    [["list", "--limit", "0", "-otable", "-ojson"]],
  ])("wherever it stands on the line: %j", async (args) => {
    const { exitCode, stderr } = await runClient(args);
    expect({ exitCode, ...JSON.parse(stderr) }).toMatchObject({ exitCode: 2, code: "usage" });
  });

  test("with --verbose it is the last line, behind the exchange", async () => {
    const { stderr } = await runClient(["get", id, "-o", "json", "-v"]);
    const lines = stderr.trimEnd().split("\n");
    expect(lines.length).toBeGreaterThan(1);
    expect(JSON.parse(lines.at(-1) ?? "")).toMatchObject({ exitCode: 4 });
  });

  test.each([[["profile"]], [["get", id, id]]])(
    "its hint names nothing that is printed elsewhere: %j",
    async (args) => {
      const { hint } = JSON.parse((await runClient([...args, "-o", "json"])).stderr);
      expect(hint ?? "").not.toContain("above");
    },
  );

  test("with the warnings that the settings deserve in it, and stderr is JSON at a good end too", async () => {
    const warned = ["-o", "json", "--header", "X-Api-Key: k"];
    const error = JSON.parse((await runClient(["get", id, ...warned])).stderr);
    expect(error).toMatchObject({ exitCode: 4, warnings: [expect.stringContaining("--header-env")] });
    const { exitCode, stderr } = await runClient(["list", ...warned]);
    expect({ exitCode, ...JSON.parse(stderr) }).toMatchObject({ exitCode: 0, warnings: error.warnings });
  });
});

test.each(["SIGINT", "SIGTERM"] as const)(
  "%s while a write is under way: exit 130, and its outcome is said to be unknown",
  async (signal) => {
    const { id } = server.add({ name: "Ada" });
    const arrived = Promise.withResolvers<void>();
    const proxy = await startFaultyProxy(server.url, async (exchange) => {
      if (!exchange.isWrite) return exchange.answer(await exchange.forward());
      await exchange.forward();
      arrived.resolve();
    });
    const child = spawnClient(["update", id, "--name", "Eve"], { command, env: env(proxy.url) });
    await arrived.promise;
    child.kill(signal);
    const [stderr, exitCode] = await Promise.all([child.stderr.text(), child.exited]);
    await proxy.stop();
    expect(exitCode).toBe(130);
    expect(stderr).toContain("unknown outcome");
    expect(stderr).toContain("Running it again is safe");
  },
);

describe("a person is asked", () => {
  const asked = (args: string[], keys: string) =>
    runOnTerminal(args, { command, env: env(), keys, keysAfter: "[y/N]" });

  test.each([
    ["yes", "y\r", 0, undefined],
    ["no", "n\r", 1, "Ada"],
    ["nothing", "\r", 1, "Ada"],
  ])("before a deletion: %s", async (_, keys, exitCode, left) => {
    const { id } = server.add({ name: "Ada" });
    const ended = await asked(["delete", id], keys);
    expect({ exitCode: ended.exitCode, left: server.read(id)?.name }).toEqual({ exitCode, left });
    expect(ended.screen).toContain("Ada");
  });

  test("not without a terminal: a deletion needs --yes", async () => {
    const { id } = server.add({ name: "Ada" });
    const { exitCode, stderr } = await runClient(["delete", id]);
    expect({ exitCode, left: server.read(id)?.name }).toEqual({ exitCode: 2, left: "Ada" });
    expect(stderr).toContain("--yes");
  });

  test("Ctrl-C at the prompt for a token: interrupted, and nothing is stored", async () => {
    using home = temporaryDirectory();
    const asked = { command, home: home.path, keys: "tok\x03", keysAfter: "Token for" };
    const { exitCode, screen } = await runOnTerminal(["login", "--url", server.url], asked);
    expect(exitCode).toBe(130);
    expect(screen).toContain("interrupted; no token was stored");
  });

  test("for a token, which is not echoed, and before a write of a protected profile", async () => {
    using home = temporaryDirectory();
    const { id } = server.add({ name: "Ada" });
    const login = await runOnTerminal(["login", "--url", server.url], {
      command,
      home: home.path,
      keys: `${TOKEN}\r`,
      keysAfter: "Token for",
    });
    expect(login.exitCode).toBe(0);
    expect(login.screen).not.toContain(TOKEN);
    const inProfile = { home: home.path, env: {} };
    expect(await runClient(["profile", "set", "default", "--protected"], inProfile)).toMatchObject({
      exitCode: 0,
    });
    expect(await runClient(["update", id, "--name", "Eve"], inProfile)).toMatchObject({ exitCode: 2 });
    expect(server.read(id)?.name).toBe("Ada");
    expect(await runClient(["update", id, "--name", "Eve", "--yes"], inProfile)).toMatchObject({
      exitCode: 0,
    });
    const prompted = await runOnTerminal(["update", id, "--name", "Zoe"], {
      command,
      home: home.path,
      keys: "y\r",
    });
    expect({ exitCode: prompted.exitCode, name: server.read(id)?.name }).toEqual({
      exitCode: 0,
      name: "Zoe",
    });
    expect(prompted.screen).toContain('profile "default" is protected');
  });
});
