/** Tokens in a real keyring. Needs the Debian packages gnome-keyring and dbus-daemon. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { rmSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { runClient, temporaryDirectory } from "./support/client.ts";
import { type CustomerServer, startCustomerServer } from "./support/customer-server.ts";
import { TOKEN } from "./support/dialect.ts";
import { compiledClient } from "./support/executable.ts";

let command: string;
let server: CustomerServer;
beforeAll(async () => {
  command = await compiledClient();
  server = startCustomerServer();
}, 120_000);
afterAll(() => server.stop());

/** Runs lines of shell in a session with an unlocked keyring of its own. */
async function inSession(home: string, lines: string): Promise<{ exitCode: number; output: string }> {
  const script = `
    printf secret | gnome-keyring-daemon --unlock --components=secrets >/dev/null 2>&1
    customers() { '${command}' "$@"; }
    exec 2>&1
    ${lines}`;
  const child = Bun.spawn(["dbus-run-session", "--", "bash", "-eu", "-c", script], {
    env: {
      PATH: process.env["PATH"] ?? "",
      HOME: home,
      URL: server.url,
      TOKEN,
      CUSTOMERS_NOTES: "always",
      XDG_RUNTIME_DIR: home,
    },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "ignore",
  });
  return { output: await child.stdout.text(), exitCode: await child.exited };
}

const configIn = (home: string) => Bun.file(join(home, ".config/customers/config.toml")).text();

test("login keeps the token in the keyring and says so; commands, rename, logout and remove follow", async () => {
  using home = temporaryDirectory();
  const { exitCode, output } = await inSession(
    home.path,
    `customers login --url "$URL" <<< "$TOKEN"
     grep -c "$TOKEN" ~/.config/customers/config.toml || true
     customers list --output json
     customers profile rename default other
     customers profile use other
     customers whoami --output json
     customers logout
     customers whoami --output json || echo "exit $?"
     customers login --url "$URL" <<< "$TOKEN"
     customers profile remove other`,
  );
  expect({ exitCode, output }).toMatchObject({ exitCode: 0 });
  expect(output).toContain("(system keyring, ");
  expect(output).toContain("[]\n");
  expect(output).toContain('"tokenFrom":"keyring"');
  expect(output).toContain("removed from the system keyring");
  expect(output).toContain("exit 3");
  expect(output).not.toContain(TOKEN);
  expect(await configIn(home.path)).not.toContain("keyring");
}, 120_000);

test("--store file does without the keyring, and takes the place of an entry of it", async () => {
  using home = temporaryDirectory();
  const { output } = await inSession(
    home.path,
    `customers login --url "$URL" --store keyring <<< "$TOKEN"
     customers login --url "$URL" --store file <<< "$TOKEN"
     customers whoami --output json`,
  );
  expect(output).toContain('"tokenFrom":"profile"');
  expect(await configIn(home.path)).toContain(TOKEN);
}, 120_000);

test("a keyring that never answers costs a login 5 s, and a refusal where it is asked for by name", async () => {
  using home = temporaryDirectory();
  const socket = join(home.path, "bus");
  const silent = createServer(() => {}).listen(socket);
  const env = { DBUS_SESSION_BUS_ADDRESS: `unix:path=${socket}` };
  const login = (more: string[]) =>
    runClient(["login", "--url", server.url, ...more], {
      command: [command],
      home: home.path,
      env,
      stdin: TOKEN,
    });
  const [chosen, named] = await Promise.all([login([]), login(["--profile", "x", "--store", "keyring"])]);
  silent.close();
  rmSync(socket, { force: true });
  expect(chosen).toMatchObject({ exitCode: 0 });
  expect(chosen.stderr).toContain("did not answer within 5 s");
  expect(named).toMatchObject({ exitCode: 1 });
  expect(named.stderr).toContain("--store file");
  expect(await configIn(home.path)).toContain(TOKEN);
}, 120_000);
