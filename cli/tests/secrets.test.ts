/** A token never appears: not on stdout, not on stderr, whatever the server or a proxy says back. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { runClient, temporaryDirectory } from "./support/client.ts";

const SECRET = "cst_VerySecretVerySecretVerySecretVerySecret";
let server: ReturnType<typeof Bun.serve>;

/** Echoes every header that it gets, as debugging servers do, in the problem and in a header. */
beforeAll(async () => {
  server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch(request) {
      const echo = JSON.stringify(Object.fromEntries(request.headers));
      return Response.json(
        { code: "odd", title: "Odd", detail: `you sent ${echo}`, errors: [{ pointer: "/x", detail: echo }] },
        {
          status: 400,
          headers: { "content-type": "application/problem+json", "x-echo": echo, "x-request-id": SECRET },
        },
      );
    },
  });
});
afterAll(() => server.stop(true));

describe.each([
  ["get", ["get", "1"]],
  ["update", ["update", "1", "--name", "x"]],
  ["create", ["create", "--name", "x", "--email", "y"]],
  ["list", ["list"]],
  ["delete", ["delete", "1", "--yes"]],
  ["login", ["login", "--token-stdin"]],
])("%s", (_, args) => {
  test.each<[string, string[], Record<string, string>, string?]>([
    ["CUSTOMERS_TOKEN", [], { CUSTOMERS_TOKEN: SECRET }],
    ["--token-stdin", ["--token-stdin"], {}, `${SECRET}\n`],
    ["--header-env", ["--header-env", "X-Odd: $ODD"], { ODD: SECRET }],
    ["--header", ["--header", `X-Api-Key: ${SECRET}`], {}],
    ["Authorization of another scheme", ["--header-env", "Authorization: Custom key=$ODD"], { ODD: SECRET }],
  ])("with %s", async (__, options, env, stdin = SECRET) => {
    using home = temporaryDirectory();
    // Both styles of telling an error, each with the whole exchange.
    for (const style of env["CUSTOMERS_TOKEN"] === undefined ? [["-v"]] : [["-v"], ["-v", "-o", "json"]]) {
      const ended = await runClient([...args, ...options, ...style], {
        home: home.path,
        env: { CUSTOMERS_URL: server.url.origin, ...env },
        ...(args.includes("--token-stdin") || options.includes("--token-stdin") ? { stdin } : {}),
      });
      // To login, 400 says that no customer service answers.
      expect(ended.exitCode).toBe(args[0] === "login" ? 1 : 6);
      expect(ended.stdout + ended.stderr).not.toContain(SECRET);
      expect(ended.stderr).toContain("***");
    }
  });
});

test("a token on the command line is refused, and not repeated", async () => {
  for (const args of [["--token", SECRET], [`--token=${SECRET}`]]) {
    const ended = await runClient(["get", "1", ...args, "--url", server.url.origin]);
    expect(ended.exitCode).toBe(2);
    expect(ended.stdout + ended.stderr).not.toContain(SECRET);
    expect(ended.stderr).toContain("--token-file");
  }
});

test("credentials in a URL are refused, and not repeated", async () => {
  for (const url of [`https://me:${SECRET}@example.com`, `ftp://me:${SECRET}@example.com`]) {
    const ended = await runClient(["get", "1", "--url", url]);
    expect(ended.exitCode).toBe(2);
    expect(ended.stdout + ended.stderr).not.toContain(SECRET);
  }
});

test("a proxy's password is not repeated", async () => {
  const ended = await runClient([
    "get",
    "1",
    "--url",
    "http://127.0.0.1:1",
    "--verbose",
    "--proxy",
    `http://me:${SECRET}@127.0.0.1:1`,
  ]);
  expect(ended.exitCode).toBe(7);
  expect(ended.stderr).toContain("process list");
  expect(ended.stdout + ended.stderr).not.toContain(SECRET);
});

test("a literal secret in --header is warned of, and --header-env named", async () => {
  const ended = await runClient(["get", "1", "--url", server.url.origin, "--header", `X-Api-Key: ${SECRET}`]);
  expect(ended.stderr).toContain("--header-env 'X-Api-Key: $VARIABLE'");
  const plain = await runClient(["get", "1", "--url", server.url.origin, "--header", "X-Tenant: acme"]);
  expect(plain.stderr).not.toContain("warning");
});

test("a profile's secrets are masked, and a malformed profile file is not quoted", async () => {
  using home = temporaryDirectory();
  const file = join(home.path, ".config", "customers", "config.toml");
  const set = await runClient(
    ["profile", "set", "x", "--url", server.url.origin, "--header-env", "X-Api-Key: $KEY"],
    {
      home: home.path,
      env: { KEY: SECRET },
    },
  );
  expect(set).toMatchObject({ exitCode: 0 });
  for (const args of [
    ["profile", "show", "x"],
    ["profile", "list"],
    ["get", "1", "--profile", "x", "--verbose"],
  ]) {
    const ended = await runClient(args, { home: home.path });
    expect(ended.stdout + ended.stderr).not.toContain(SECRET);
  }
  writeFileSync(file, `[profiles.x]\ntoken = "${SECRET}\n`, { mode: 0o600 });
  const ended = await runClient(["get", "1", "--profile", "x"], { home: home.path });
  expect(ended.exitCode).toBe(2);
  expect(ended.stderr).toContain("line 2");
  expect(ended.stderr).not.toContain(SECRET);
});
