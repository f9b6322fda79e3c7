/** Where there is no keyring, nothing looks for one, and what asks for it by name is told. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { join } from "node:path";
import { runClient, temporaryDirectory } from "./support/client.ts";
import { type CustomerServer, startCustomerServer } from "./support/customer-server.ts";
import { TOKEN } from "./support/dialect.ts";
import { compiledClient } from "./support/executable.ts";

let command: string[];
let server: CustomerServer;
beforeAll(async () => {
  command = [await compiledClient()];
  server = startCustomerServer();
});
afterAll(() => server.stop());

test("a login without a keyring keeps the token in the profile file, and says so", async () => {
  using home = temporaryDirectory();
  const login = ["login", "--url", server.url];
  const { exitCode, stderr } = await runClient(login, { command, home: home.path, stdin: TOKEN });
  expect(exitCode).toBe(0);
  expect(stderr).toContain("config.toml");
  expect(stderr).not.toContain("keyring");
  const named = await runClient([...login, "--store", "keyring"], { command, home: home.path, stdin: TOKEN });
  expect(named.exitCode).toBe(1);
  expect(named.stderr).toContain("--store file");
});

test("a profile whose token is in a keyring that is not there sends nothing, and says what to do", async () => {
  using home = temporaryDirectory();
  const text = `current = "x"\n[profiles.x]\nurl = "${server.url}"\nkeyring = "x 1"\n`;
  await Bun.write(join(home.path, ".config/customers/config.toml"), text, { mode: 0o600 });
  const requests = server.requests.length;
  const refused = await runClient(["list"], { command, home: home.path });
  expect(refused.exitCode).toBe(2);
  expect(refused.stderr).toContain("customers login --store file");
  expect(server.requests.length).toBe(requests);
  const shown = await runClient(["profile", "show", "x"], { command, home: home.path });
  expect(shown.stdout).toContain("(system keyring)");
  const login = ["login", "--profile", "x", "--store", "file"];
  expect(await runClient(login, { command, home: home.path, stdin: TOKEN })).toMatchObject({ exitCode: 0 });
  expect((await runClient(["list"], { command, home: home.path })).exitCode).toBe(0);
});

test.each(["profile set x --unset token", "logout", "profile remove x"])(
  "%s leaves no reference to the keyring, and says what it could not delete there",
  async (line) => {
    using home = temporaryDirectory();
    const path = join(home.path, ".config/customers/config.toml");
    await Bun.write(path, '[profiles.x]\nurl = "http://127.0.0.1:1"\nkeyring = "x 1"\n', { mode: 0o600 });
    const env = { CUSTOMERS_PROFILE: "x" };
    const { exitCode, stderr } = await runClient(line.split(" "), { command, home: home.path, env });
    expect(exitCode).toBe(1);
    expect(stderr).toContain('delete the entry "x 1"');
    expect(await Bun.file(path).text()).not.toContain("keyring");
  },
);
