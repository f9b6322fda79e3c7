/**
 * No setting of one deployment reaches another: two real servers, and the one that was not meant sees no
 * request.
 */
import { afterAll, expect, test } from "bun:test";
import {
  lstatSync,
  mkdirSync,
  readFileSync,
  renameSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { makeCertificates } from "./support/certificates.ts";
import { type RunOptions, runClient, temporaryDirectory } from "./support/client.ts";
import { startCustomerServer } from "./support/customer-server.ts";
import { TOKEN } from "./support/dialect.ts";

const stops: (() => unknown)[] = [];
afterAll(async () => {
  for (const stop of stops.splice(0)) await stop();
});

/** A home directory with this profile file. */
function place(toml: string) {
  const directory = temporaryDirectory();
  stops.push(() => directory[Symbol.dispose]());
  const config = join(directory.path, ".config/customers/config.toml");
  mkdirSync(join(directory.path, ".config/customers"), { recursive: true });
  writeFileSync(config, toml, { mode: 0o600 });
  const customers = (args: string[], options: RunOptions = {}) =>
    runClient(args, { home: directory.path, ...options });
  return { path: directory.path, config, customers, text: () => readFileSync(config, "utf8") };
}

function twoServers() {
  const production = startCustomerServer();
  const staging = startCustomerServer();
  stops.push(production.stop, staging.stop);
  return { production, staging };
}

test("--profile outranks CUSTOMERS_URL and CUSTOMERS_TOKEN: production sees nothing", async () => {
  const { production, staging } = twoServers();
  const { id } = production.add({});
  const { customers } = place(`[profiles.staging]\nurl = "${staging.url}"\ntoken = "${TOKEN}"\n`);
  const env = { CUSTOMERS_URL: production.url, CUSTOMERS_TOKEN: TOKEN };
  const ended = await customers(["--profile", "staging", "delete", id, "--yes"], { env });
  expect(ended.exitCode).toBe(4);
  expect(production.requests).toEqual([]);
  expect(production.read(id)).toBeDefined();
  expect(staging.requests.length).toBeGreaterThan(0);
});

test.each([
  ["--profile and --url", ["--profile", "staging", "--url", "PRODUCTION"], {}],
  ["CUSTOMERS_PROFILE and CUSTOMERS_URL", [], { CUSTOMERS_PROFILE: "staging", CUSTOMERS_URL: "PRODUCTION" }],
])("%s that disagree: exit 2, both are named, no request is sent", async (_, flags, variables) => {
  const { production, staging } = twoServers();
  const { customers } = place(`[profiles.staging]\nurl = "${staging.url}"\ntoken = "${TOKEN}"\n`);
  const real = (text: string) => text.replace("PRODUCTION", production.url);
  const env = Object.fromEntries(Object.entries(variables).map(([name, value]) => [name, real(value)]));
  const { exitCode, stderr } = await customers([...flags.map(real), "list"], { env });
  expect(exitCode).toBe(2);
  expect(stderr).toContain(production.url);
  expect(stderr).toContain(staging.url);
  expect([...production.requests, ...staging.requests]).toEqual([]);
});

test("a stored token is not sent to another origin, and the command says so", async () => {
  const { production, staging } = twoServers();
  const { customers } = place(
    `current = "p"\n[profiles.p]\nurl = "${production.url}"\ntoken = "${TOKEN}"\n[profiles.p.headers]\nX-Api-Key = "k"\n`,
  );
  const { exitCode, stderr } = await customers(["list", "--url", staging.url]);
  expect(exitCode).toBe(3);
  expect(stderr).toContain(`profile "p" belongs to ${production.url}`);
  const headers = staging.requests[0]?.headers ?? {};
  expect(headers["authorization"]).toBeUndefined();
  expect(headers["x-api-key"]).toBeUndefined();
});

test.each([
  ["--url", (url: string) => ({ args: ["--url", `${url}/`], env: {} })],
  ["CUSTOMERS_URL", (url: string) => ({ args: [], env: { CUSTOMERS_URL: url } })],
])("a protected profile guards its origin against writes by %s", async (_, route) => {
  const { production } = twoServers();
  const { id } = production.add({});
  const { customers } = place(`[profiles.prod]\nurl = "${production.url}"\nprotected = true\n`);
  const { args, env } = route(production.url);
  const ended = await customers([...args, "update", id, "--name", "x"], {
    env: { ...env, CUSTOMERS_TOKEN: TOKEN },
  });
  expect(ended.exitCode).toBe(2);
  expect(ended.stderr).toContain('profile "prod" is protected');
  expect(production.writes).toEqual([]);
});

test("login does not move a profile to the server of CUSTOMERS_URL", async () => {
  const { production, staging } = twoServers();
  const toml = `current = "prod"\n[profiles.prod]\nurl = "${production.url}"\n`;
  const { customers, text } = place(toml);
  const env = { CUSTOMERS_URL: staging.url };
  const refused = await customers(["login"], { env, stdin: TOKEN });
  expect(refused.exitCode).toBe(2);
  expect(refused.stderr).toContain(production.url);
  expect(refused.stderr).toContain(staging.url);
  expect(text()).toBe(toml);
  const named = await customers(["login", "--profile", "prod"], { env, stdin: TOKEN });
  expect(named).toMatchObject({ exitCode: 0 });
  expect(text()).toContain(`url = "${production.url}"`);
  expect(staging.requests).toEqual([]);
});

test("a relative --cacert is stored as an absolute path, and works from any directory", async () => {
  const { customers, path, text } = place("");
  writeFileSync(join(path, "ca.pem"), makeCertificates().ca);
  const set = ["profile", "set", "p", "--url", "https://127.0.0.1:1", "--cacert", "ca.pem"];
  expect(await customers(set, { cwd: path })).toMatchObject({ exitCode: 0 });
  expect(text()).toContain(`cacert = "${join(path, "ca.pem")}"`);
  expect(await customers(["list", "--profile", "p"], { cwd: "/" })).toMatchObject({ exitCode: 7 });
});

test("profile show and --verbose never show a proxy's password, of a profile or of a variable", async () => {
  const { customers } = place(
    '[profiles.p]\nurl = "http://x.invalid"\nproxy = "http://me:pr0xypass@127.0.0.1:1"\n',
  );
  const shown = await customers(["profile", "show", "p"]);
  expect(shown.stdout).toContain("http://me:***@127.0.0.1:1");
  for (const run of [
    shown,
    await customers(["list", "--profile", "p", "--verbose"]),
    await customers(["list", "--url", "http://x.invalid", "--verbose"], {
      env: { http_proxy: "http://me:pr0xypass@127.0.0.1:1" },
    }),
  ]) {
    expect(run.stdout + run.stderr).not.toContain("pr0xypass");
  }
});

test("an unknown key is an error in the profile in use, and a warning elsewhere", async () => {
  const { staging } = twoServers();
  const { customers } = place(
    `[profiles.s]\nurl = "${staging.url}"\ntoken = "${TOKEN}"\n[profiles.p]\nurll = "http://x"\n`,
  );
  const other = await customers(["list", "--profile", "s"]);
  expect(other.exitCode).toBe(0);
  expect(other.stderr).toContain('profile "p"');
  expect(other.stderr).toContain('unknown setting "urll"');
  const used = await customers(["list", "--profile", "p"]);
  expect(used.exitCode).toBe(2);
  expect(used.stderr).toContain('unknown setting "urll"');
  expect(await customers(["profile", "set", "p", "--unset", "urll"])).toMatchObject({ exitCode: 0 });
  expect((await customers(["profile", "list"])).stderr).not.toContain("urll");
});

test("a change of the profile file keeps comments, unknown keys, a symbolic link, and mode 0600", async () => {
  const { customers, config, path, text } = place(
    '# mine\n[profiles.a] # one\nurl = "http://a" # the url\nfuture = 1\n',
  );
  const real = join(path, "dotfiles.toml");
  renameSync(config, real);
  symlinkSync(real, config);
  expect(await customers(["profile", "set", "b", "--url", "http://b.example", "--protected"])).toMatchObject({
    exitCode: 0,
  });
  expect(await customers(["profile", "use", "b"])).toMatchObject({ exitCode: 0 });
  expect(lstatSync(config).isSymbolicLink()).toBe(true);
  expect(statSync(real).mode & 0o777).toBe(0o600);
  expect(text()).toBe(
    '# mine\ncurrent = "b"\n[profiles.a] # one\nurl = "http://a" # the url\nfuture = 1\n\n[profiles.b]\nurl = "http://b.example"\nprotected = true\n',
  );
});

test("a file whose layout cannot be edited without damage is left as it is", async () => {
  const { customers, text } = place('profiles = { a = { url = "http://a" } } # mine\n');
  const { exitCode, stderr } = await customers(["profile", "set", "a", "--timeout", "5s"]);
  expect(exitCode).toBe(2);
  expect(stderr).toContain("without damage");
  expect(text()).toBe('profiles = { a = { url = "http://a" } } # mine\n');
});
