/** whoami, config, logout, profile remove and rename, through the real program. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
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

function place() {
  const server = startCustomerServer();
  const home = temporaryDirectory();
  stops.push(server.stop, () => home[Symbol.dispose]());
  const path = join(home.path, ".config/customers/config.toml");
  mkdirSync(join(home.path, ".config/customers"), { recursive: true });
  writeFileSync(
    path,
    `current = "a"\n\n# the first\n[profiles.a]\nurl = "${server.url}"\ntoken = "${TOKEN}"\ntimeout = "5s"\n\n[profiles.a.headers]\nX-Api-Key = "very-secret"\n\n[profiles.b]\nurl = "http://b.example"\nproxy = "http://me:pr0xypass@p:1"\n`,
    { mode: 0o600 },
  );
  const run = (args: string[], options: RunOptions = {}) => runClient(args, { home: home.path, ...options });
  return { server, home: home.path, run, text: () => readFileSync(path, "utf8") };
}

test("whoami names the server, the profile and the source of the token, and checks it", async () => {
  const { run, server } = place();
  const known = await run(["whoami", "-o", "json"]);
  expect(known.exitCode).toBe(0);
  expect(JSON.parse(known.stdout)).toEqual({
    url: server.url,
    urlFrom: 'profile "a" (profile use)',
    profile: "a",
    tokenFrom: "profile",
    headers: "Authorization, X-Api-Key",
    protectedBy: null,
    accepted: true,
    tokenExpires: null,
  });
  const wrong = await run(["whoami", "-o", "json"], { env: { CUSTOMERS_TOKEN: "cst_wrong" } });
  expect([wrong.exitCode, JSON.parse(wrong.stdout)]).toEqual([
    3,
    expect.objectContaining({ accepted: false, tokenFrom: "CUSTOMERS_TOKEN" }),
  ]);
});

test("config shows every setting with its source, and no secret", async () => {
  const { run, server } = place();
  const rows = async (args: string[], env: Record<string, string> = {}) => {
    const { stdout, exitCode } = await run(["config", "-o", "json", ...args], { env });
    expect(exitCode).toBe(0);
    expect(stdout).not.toMatch(/very-secret|pr0xypass|cst_/);
    const list = JSON.parse(stdout) as { setting: string; value: unknown; from: string }[];
    return Object.fromEntries(list.map(({ setting, value, from }) => [setting, [value, from]]));
  };
  expect(await rows([])).toMatchObject({
    url: [server.url, 'profile "a" (profile use)'],
    profile: ["a", "profile use"],
    "header Authorization": ["***", "profile"],
    "header X-Api-Key": ["***", 'profile "a"'],
    timeout: ["5s", 'profile "a"'],
    insecure: [false, "default"],
  });
  expect(await rows(["--profile", "b", "--timeout", "1"])).toMatchObject({
    url: ["http://b.example", 'profile "b" (--profile)'],
    proxy: ["http://me:***@p:1/", "the profile's proxy"],
    timeout: ["1s", "--timeout"],
  });
  expect(await rows(["--url", "http://c.example"])).toMatchObject({ profile: [null, "default"] });
});

test("logout removes the token alone, and says so where there is none", async () => {
  const { run, text } = place();
  expect(await run(["logout"])).toMatchObject({ exitCode: 0 });
  expect(text()).not.toContain("token");
  expect(text()).toContain("X-Api-Key");
  expect((await run(["logout"])).exitCode).toBe(2);
  expect((await run(["logout", "--profile", "none"])).exitCode).toBe(2);
});

test("profile rename keeps its settings, comments and being in use; remove takes all of it", async () => {
  const { run, text } = place();
  expect(await run(["profile", "rename", "a", "first"])).toMatchObject({ exitCode: 0 });
  expect(text()).toContain('current = "first"\n\n# the first\n[profiles.first]\nurl');
  expect(text()).toContain("[profiles.first.headers]");
  expect((await run(["profile", "rename", "first", "b"])).exitCode).toBe(2);
  expect((await run(["profile", "rename", "none", "c"])).exitCode).toBe(2);
  expect(await run(["profile", "remove", "first"])).toMatchObject({ exitCode: 0 });
  expect(text().trim()).toStartWith("[profiles.b]");
  expect((await run(["profile", "remove", "first"])).exitCode).toBe(2);
});

test("the last profile can be removed, and a new one made", async () => {
  using home = temporaryDirectory();
  const run = (args: string[]) => runClient(args, { command, home: home.path });
  for (const args of [
    ["set", "only", "--url", "http://127.0.0.1:1"],
    ["use", "only"],
    ["remove", "only"],
    ["set", "next", "--url", "http://127.0.0.1:1"],
  ]) {
    expect([args, await run(["profile", ...args])]).toMatchObject([args, { exitCode: 0 }]);
  }
});

test("JSON is indented on a terminal, and the server's own text elsewhere", async () => {
  const { run, home, server } = place();
  const { id } = server.add({ name: "Ada" });
  const args = ["get", id, "-o", "json", "--fields", "id,name"];
  expect((await run(args)).stdout).toBe(`{"id":"${id}","name":"Ada"}\n`);
  const { screen } = await runOnTerminal(args, { command, home });
  expect(screen.replaceAll("\r", "")).toBe(`{\n  "id": "${id}",\n  "name": "Ada"\n}\n`);
});
