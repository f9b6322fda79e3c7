/** The file of profiles under several writers, and where it can't be written: through the real program. */
import { expect, test } from "bun:test";
import { chmodSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { CLIENT_COMMAND, runClient, temporaryDirectory } from "./support/client.ts";
import { TOKEN } from "./support/dialect.ts";

const stored = (home: string) =>
  Bun.TOML.parse(readFileSync(join(home, ".config/customers/config.toml"), "utf8")) as {
    current?: string;
    profiles: Record<string, Record<string, unknown>>;
  };

test("of profiles that are stored at the same moment every one is there", async () => {
  using home = temporaryDirectory();
  const names = ["a", "b", "c", "d", "e", "f"];
  const runs = await Promise.all(
    names.map((name) =>
      runClient(["profile", "set", name, "--url", `http://${name}.example`], {
        home: home.path,
        command: CLIENT_COMMAND,
      }),
    ),
  );
  expect(runs.map(({ exitCode }) => exitCode)).toEqual(names.map(() => 0));
  expect(Object.keys(stored(home.path).profiles).sort()).toEqual(names);
  expect(readdirSync(join(home.path, ".config/customers")).sort()).toEqual([
    "config.toml",
    "config.toml.lock",
  ]);
});

test("a login changes url and token alone: what others store while it checks its token stays", async () => {
  using home = temporaryDirectory();
  const set = (...args: string[]) => runClient(["profile", "set", ...args], { home: home.path });
  using server = checkingServer(async () => {
    await set("prod", "--protected", "--timeout", "5s");
    await set("other", "--url", "http://other.example");
    await runClient(["profile", "use", "other"], { home: home.path });
  });
  await set("prod", "--url", server.url);
  const login = await runClient(["login", "--profile", "prod"], { home: home.path, stdin: TOKEN });
  expect(login).toMatchObject({ exitCode: 0 });
  expect(stored(home.path)).toEqual({
    current: "other",
    profiles: {
      prod: { url: server.url, token: TOKEN, protected: true, timeout: "5000ms" },
      other: { url: "http://other.example" },
    },
  });
});

test("a profile that is given another server meanwhile does not get a token that was checked with the first", async () => {
  using home = temporaryDirectory();
  const set = (url: string) => runClient(["profile", "set", "prod", "--url", url], { home: home.path });
  using server = checkingServer(() => set("http://other.example"));
  await set(server.url);
  const { exitCode, stderr } = await runClient(["login", "--profile", "prod"], {
    home: home.path,
    stdin: TOKEN,
  });
  expect({ exitCode, stderr }).toMatchObject({
    exitCode: 1,
    stderr: expect.stringContaining("the token was not stored"),
  });
  expect(stored(home.path).profiles).toEqual({ prod: { url: "http://other.example" } });
});

test.each([
  ["the home directory is none", () => "/dev/null"],
  ["nothing can be made there", () => "/proc"],
  [
    "a file stands where the directory should be",
    (directory: string) => {
      writeFileSync(join(directory, ".config"), "");
      return directory;
    },
  ],
  [
    "the file is a link to itself",
    (directory: string) => {
      mkdirSync(join(directory, ".config/customers"), { recursive: true });
      symlinkSync("config.toml", join(directory, ".config/customers/config.toml"));
      return directory;
    },
  ],
  [
    "a directory stands where the file should be",
    (directory: string) => {
      mkdirSync(join(directory, ".config/customers/config.toml"), { recursive: true });
      return directory;
    },
  ],
])("%s: profile set and login say so, exit 2, and no trace", async (_, homeOf) => {
  using directory = temporaryDirectory();
  using server = checkingServer(async () => {});
  const home = homeOf(directory.path);
  for (const [args, stdin] of [
    [["profile", "set", "x", "--url", "http://x.example"], ""],
    [["login", "--url", server.url], TOKEN],
  ] as const) {
    const { exitCode, stderr } = await runClient([...args], { home, stdin });
    expect({ exitCode, stderr }).toMatchObject({
      exitCode: 2,
      stderr: expect.stringContaining("profile file"),
    });
    expect(stderr).not.toMatch(/fault of this program|\n\s+at /);
  }
});

test.each<[string, () => Response, string]>([
  [
    "a web page",
    () => new Response("<html>", { status: 404, headers: { "content-type": "text/html" } }),
    "a web page, not one of a customer service (404)",
  ],
  [
    "a login page",
    () => new Response("<html>", { headers: { "content-type": "text/html; charset=utf-8" } }),
    "a web page, not one of a customer service (200)",
  ],
  ["a redirect", () => new Response(null, { status: 302, headers: { location: "/x" } }), "redirects"],
  ["a service that is no customer service", () => new Response("hello"), "not answer as a customer service"],
])("login names %s, and stores nothing", async (_, answer, words) => {
  using home = temporaryDirectory();
  const server = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: answer });
  const url = `http://127.0.0.1:${server.port}`;
  const { exitCode, stderr } = await runClient(["login", "--url", url], { home: home.path, stdin: TOKEN });
  await server.stop(true);
  expect({ exitCode, stderr }).toMatchObject({ exitCode: 1, stderr: expect.stringContaining(words) });
  expect(readdirSync(home.path)).not.toContain(".config");
});

/** Takes every token; `meanwhile` is done before it says so. */
function checkingServer(meanwhile: () => Promise<unknown>) {
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    idleTimeout: 255,
    async fetch(request) {
      await meanwhile();
      return new Response(null, { status: request.url.includes("fields=") ? 400 : 404 });
    },
  });
  return { url: `http://127.0.0.1:${server.port}`, [Symbol.dispose]: () => void server.stop(true) };
}

test.each([
  [0o644, "has mode 0644 and may hold a token"],
  [0o666, "has mode 0666, so others can change it, and may hold a token"],
])("a file of mode %o has a warning that says what others can do", async (mode, words) => {
  using home = temporaryDirectory();
  await runClient(["profile", "set", "a", "--url", "http://a.example"], { home: home.path });
  chmodSync(join(home.path, ".config/customers/config.toml"), mode);
  expect((await runClient(["config"], { home: home.path })).stderr).toContain(words);
});

test.each([
  [0o600, ""],
  // Docker and Kubernetes mount secrets like this, and a job could not change it.
  [0o444, ""],
  [0o644, ""],
  [0o620, "has mode 0620, so others can change the token"],
  [0o666, "has mode 0666, so others can change the token"],
])("a file of --token-file of mode %o has a warning where others can change it", async (mode, words) => {
  using home = temporaryDirectory();
  const path = join(home.path, "token");
  writeFileSync(path, "cst_x\n");
  chmodSync(path, mode);
  const args = ["config", "--url", "http://a.example", "--token-file", path];
  const { exitCode, stderr } = await runClient(args, { home: home.path });
  expect(exitCode).toBe(0);
  if (words === "") expect(stderr).toBe("");
  else expect(stderr).toContain(words);
});
