/** What the client says of a token that is about to end, over this project's own service. */
import { Database } from "bun:sqlite";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import type { Finding } from "../doctor/diagnosis.ts";
import { type RunOptions, runClient, runOnTerminal, temporaryDirectory } from "./support/client.ts";
import { type Service, startService } from "./support/service.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

const directory = temporaryDirectory();
let service: Service;
/** The end of the token of the role `editor`; that of `viewer` has none. */
let endMs: number;

beforeAll(async () => {
  const path = join(directory.path, "customers.db");
  service = await startService(["editor", "viewer"], { DATABASE_URL: `sqlite:${path}` });
  endMs = Math.floor(Date.now() / 1000) * 1000 + 6 * DAY_MS + HOUR_MS / 2;
  using database = new Database(path);
  database.run("PRAGMA busy_timeout = 60000"); // The service may write at this moment.
  const { changes } = database.run("UPDATE tokens SET created_at = ?, expires_at = ? WHERE role = 'editor'", [
    endMs - 90 * DAY_MS,
    endMs,
  ]);
  expect(changes).toBe(1);
});
afterAll(async () => {
  await service.stop();
  directory[Symbol.dispose]();
});

const env = (role = "editor", more: Record<string, string> = {}) => ({
  CUSTOMERS_URL: service.url,
  CUSTOMERS_TOKEN: service.tokens[role] ?? "",
  CUSTOMERS_NOTES: "",
  ...more,
});
const run = (args: string[], options: RunOptions & { home?: string } = {}) =>
  runClient(args, { env: env(), ...options });
const inWords = () =>
  `ends on ${new Date(endMs).toISOString().slice(0, 16).replace("T", " ")} UTC, in 6 days`;
const warning = (use = "set CUSTOMERS_TOKEN to it") =>
  `warning: the token ${inWords()}; get a new token from those who run the service, then ${use}`;

describe("whoami", () => {
  test("warns in one line on stderr, and names the end on stdout", async () => {
    const { exitCode, stdout, stderr } = await run(["whoami"]);
    expect([exitCode, stderr]).toEqual([0, `${warning()}\n`]);
    expect(JSON.parse(stdout)).toMatchObject({ accepted: true, tokenExpires: new Date(endMs).toISOString() });
  });

  test("warns in one object of JSON where JSON is asked for", async () => {
    const { exitCode, stderr } = await run(["whoami", "--output", "json"]);
    expect([exitCode, JSON.parse(stderr)]).toEqual([0, { warnings: [warning()] }]);
  });

  test("says nothing of a token that is not near its end", async () => {
    const { exitCode, stdout, stderr } = await run(["whoami"], { env: env("viewer") });
    expect([exitCode, stderr, JSON.parse(stdout).tokenExpires]).toEqual([0, "", null]);
  });

  test.each([
    [
      "--token-file",
      () => ["--token-file", join(directory.path, "token")],
      "write it into the file of --token-file",
    ],
    ["--token-stdin", () => ["--token-stdin"], "give it on stdin"],
    [
      "--header-env",
      () => ["--header-env", "Authorization: Bearer $OWN"],
      "put it into the header that has the old one",
    ],
  ])("says what to do with the new token of %s", async (_, args, use) => {
    const token = service.tokens["editor"] ?? "";
    await Bun.write(join(directory.path, "token"), token);
    const { stderr } = await run(["whoami", ...args()], {
      env: env("editor", { CUSTOMERS_TOKEN: "", OWN: token }),
      stdin: token,
    });
    expect(stderr).toBe(`${warning(use)}\n`);
  });
});

test("login stores the token and warns; later commands name the profile to log in to", async () => {
  using home = temporaryDirectory();
  const login = await run(["login", "--url", service.url, "--profile", "own", "--store", "file"], {
    env: { CUSTOMERS_NOTES: "" },
    home: home.path,
    stdin: service.tokens["editor"] ?? "",
  });
  const use = "run: customers login --profile own";
  expect([login.exitCode, login.stdout, login.stderr]).toEqual([0, "", `${warning(use)}\n`]);
  expect(readdirSync(home.path)).toEqual([".config"]);
  const later = await run(["whoami"], { env: { CUSTOMERS_NOTES: "" }, home: home.path });
  expect(later.stderr).toBe(`${warning(use)}\n`);
});

test("doctor has a finding, which does not change how it ends", async () => {
  const { exitCode, stdout, stderr } = await run(["doctor", "--output", "json"]);
  const findings: Finding[] = JSON.parse(stdout);
  expect([exitCode, stderr, findings.filter(({ check }) => check === "token")]).toEqual([
    0,
    "",
    [
      {
        check: "token",
        verdict: "warning",
        found: `it ${inWords()}`,
        fix: "get a new token from those who run the service, then set CUSTOMERS_TOKEN to it",
      },
    ],
  ]);
});

describe("other commands", () => {
  const LIST = ["list", "--limit", "1", "--output", "json"];

  test("say nothing in a script: stdout, stderr and exit code are those of any other token", async () => {
    for (const args of [LIST, ["get", "00000000-0000-0000-0000-000000000000"]]) {
      const seen = async (role: string) => {
        const { stderr, ...rest } = await run(args, { env: env(role) });
        return { ...rest, stderr: stderr.replace(/^request id: .*$/m, "") };
      };
      expect(await seen("editor")).toEqual(await seen("viewer"));
    }
  });

  test("warn a person at a terminal, and not with --quiet", async () => {
    const screen = async (...args: string[]) =>
      (await runOnTerminal(["list", ...args], { env: env(), cols: 400 })).screen;
    expect(await screen()).toContain(`${warning()}\r\n`);
    expect(await screen("--quiet")).not.toContain("warning");
  });
});
