/** Every file that a command writes is tried before anything is sent. */
import { afterAll, beforeEach, expect, test } from "bun:test";
import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { CLIENT_COMMAND, runClient, spawnClient, temporaryDirectory } from "./support/client.ts";
import { startCustomerServer } from "./support/customer-server.ts";
import { TOKEN } from "./support/dialect.ts";

const server = startCustomerServer();
const place = temporaryDirectory();
const env = { CUSTOMERS_URL: server.url, CUSTOMERS_TOKEN: TOKEN, XDG_STATE_HOME: join(place.path, "state") };
const rows = join(place.path, "rows.csv");
const undo = join(place.path, "state/customers/undo.sqlite");
const missing = join(place.path, "no-such-directory/file.csv");
mkdirSync(join(place.path, "state/customers"), { recursive: true });
writeFileSync(rows, "name,email\nBob,no-address\n");
beforeEach(() => void server.requests.splice(0));
afterAll(async () => {
  await server.stop();
  place[Symbol.dispose]();
});

test.each([
  ["import --failed", ["import", rows, "--failed", missing]],
  ["import --journal", ["import", rows, "--journal", missing]],
  ["import of a pipe --failed", ["import", "-", "--failed", missing]],
  ["export", ["export", missing]],
])("%s into a missing directory: exit 2, nothing is sent", async (_, args) => {
  const { exitCode, stderr } = await runClient(args, { env, stdin: "name,email\nBob,no-address\n" });
  expect({ exitCode, requests: server.requests }).toEqual({ exitCode: 2, requests: [] });
  expect(stderr).toContain("no-such-directory");
});

test("login where no profile can be stored: exit 2, no token is asked for or sent", async () => {
  const home = join(place.path, "rows.csv"); // a file where a directory should be
  const { exitCode, stderr } = await runClient(["login", "--url", server.url], { home, stdin: TOKEN });
  expect({ exitCode, requests: server.requests }).toEqual({ exitCode: 2, requests: [] });
  expect(stderr).toContain("can't be written");
});

test.each([
  ["no database", "this is no database, and long enough to be read as the header of one: it is 100 bytes"],
  ["cut short", "SQLite format 3\0"],
])("an undo journal that is %s is called damaged, and nothing is sent", async (_, text) => {
  writeFileSync(undo, text.padEnd(200, " "));
  const { id } = server.add({});
  for (const args of [
    ["update", id, "--name", "Eve"],
    ["undo", id],
    ["import", rows],
  ]) {
    const { exitCode, stderr } = await runClient(args, { env: { ...env, CUSTOMERS_UNDO: "7d" } });
    expect({ exitCode, requests: server.requests }).toEqual({ exitCode: 2, requests: [] });
    expect(stderr).toContain(`${undo} is no undo journal, or a damaged one`);
  }
});

test.each([
  [
    "of the format before the release",
    "CREATE TABLE import (import_id TEXT); CREATE TABLE row (number, state)",
  ],
  ["of another program", "CREATE TABLE import (something)"],
])("a journal %s is refused, and nothing is sent", async (_, schema) => {
  const { Database } = await import("bun:sqlite");
  const journal = join(place.path, `${crypto.randomUUID()}.journal`);
  const database = new Database(journal, { create: true });
  database.run(schema);
  database.close();
  const { exitCode, stderr } = await runClient(["import", rows, "--journal", journal], { env });
  expect({ exitCode, requests: server.requests }).toEqual({ exitCode: 2, requests: [] });
  expect(stderr).toContain(`${journal} is no journal of an import`);
});

test("an import of a pipe that is killed leaves none of its rows on the disk", async () => {
  using directory = temporaryDirectory();
  const temporary = join(directory.path, "tmp");
  mkdirSync(temporary);
  const seen = Promise.withResolvers<void>();
  const hanging = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch() {
      seen.resolve();
      return new Promise<never>(() => {});
    },
  });
  const child = spawnClient(["import", "-"], {
    command: CLIENT_COMMAND,
    env: { ...env, CUSTOMERS_URL: `http://127.0.0.1:${hanging.port}`, TMPDIR: temporary },
    stdin: "name,email\nBob,bob@example.com\n",
    cwd: directory.path,
  });
  await seen.promise;
  child.kill("SIGKILL");
  await child.exited;
  await hanging.stop(true);
  expect(readdirSync(temporary)).toEqual([]);
});
