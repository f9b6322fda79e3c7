/** Every example under the help of a command runs as it stands there. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { symlinkSync } from "node:fs";
import { join } from "node:path";
import { RUNTIME, runClient, temporaryDirectory } from "./support/client.ts";
import { type CustomerServer, startCustomerServer } from "./support/customer-server.ts";
import { TOKEN } from "./support/dialect.ts";
import { compiledClient } from "./support/executable.ts";

const directory = temporaryDirectory();
const client = await compiledClient();
let server: CustomerServer;
beforeAll(async () => {
  server = startCustomerServer();
  symlinkSync(client, join(directory.path, "customers"));
  await Bun.write(join(directory.path, "customers.csv"), "name,email\nAda,ada@example.com\n");
  await Bun.write(join(directory.path, "token.txt"), `${TOKEN}\n`);
});
afterAll(async () => {
  await server.stop();
  directory[Symbol.dispose]();
});

/** Their examples are about what a profile says. */
const OF_PROFILES = ["profile", "logout", "config"];

async function storeProfile(home: string): Promise<void> {
  const stored = { home: directory.path, env: { XDG_CONFIG_HOME: home } };
  expect((await runClient(["profile", "set", "staging", "--url", server.url], stored)).exitCode).toBe(0);
  const login = ["login", "--profile", "staging", "--url", server.url];
  expect((await runClient(login, { ...stored, stdin: TOKEN })).exitCode).toBe(0);
}

async function commandNames(): Promise<string[]> {
  const { stdout } = await runClient(["--help"]);
  const commands = stdout.slice(stdout.indexOf("Customers:"), stdout.indexOf("Global Options:"));
  return [...commands.matchAll(/^ {2}([a-z]+)/gm)].map(([, name = ""]) => name);
}

test("the options of every command stand below the list of commands", async () => {
  const { stdout } = await runClient(["--help"]);
  expect(stdout.indexOf("Global Options:")).toBeGreaterThan(stdout.indexOf("Customers:"));
  expect(stdout.indexOf("--proxy")).toBeGreaterThan(stdout.indexOf("Global Options:"));
});

for (const name of await commandNames()) {
  test(`customers ${name} --help has examples, and each of them runs`, async () => {
    const { stdout } = await runClient([name, "--help"]);
    const lines = /^Examples:\n((?: {2}\S.*\n)+)/m.exec(stdout)?.[1]?.trimEnd().split("\n") ?? [];
    expect(lines.length).toBeGreaterThan(0);
    const { id } = server.add({
      name: "Ada",
      email: "ada@example.com",
      status: name === "delete" ? "closed" : "active",
    });
    const home = join(directory.path, name);
    const credentials = { CUSTOMERS_URL: server.url, CUSTOMERS_TOKEN: TOKEN };
    if (name === "undo") {
      const env = { ...credentials, CUSTOMERS_UNDO: "1d" };
      const updated = await runClient(["update", id, "--name", "Eve"], {
        home: directory.path,
        env,
      });
      expect(updated.exitCode).toBe(0);
    }
    if (OF_PROFILES.includes(name) && name !== "profile") await storeProfile(home);
    for (const line of lines) {
      const child = Bun.spawn(["sh", "-c", line], {
        cwd: directory.path,
        env: {
          ...RUNTIME,
          PATH: `${directory.path}:${process.env["PATH"] ?? ""}`,
          HOME: directory.path,
          ID: id,
          EDITOR: "true",
          XDG_CONFIG_HOME: home,
          ...(OF_PROFILES.includes(name) ? {} : credentials),
        },
        stdin: "ignore",
        stdout: "ignore",
        stderr: "pipe",
      });
      const stderr = await child.stderr.text();
      expect({ line, exitCode: await child.exited, stderr }).toMatchObject({ line, exitCode: 0 });
    }
  });
}
