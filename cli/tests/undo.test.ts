/** `customers undo`: what this machine's writes replaced is written back, and nobody else's change is. */
import { Database } from "bun:sqlite";
import { afterAll, beforeAll, expect, test } from "bun:test";
import { chmodSync, existsSync, mkdirSync, writeFileSync } from "node:fs";
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

/** A server and a home whose client records changes. */
function place(keep = "7d") {
  const server = startCustomerServer();
  const home = temporaryDirectory();
  stops.push(server.stop, () => home[Symbol.dispose]());
  const env = { CUSTOMERS_URL: server.url, CUSTOMERS_TOKEN: TOKEN, CUSTOMERS_UNDO: keep };
  const run = (args: string[], options: RunOptions = {}) =>
    runClient(args, { home: home.path, ...options, env: { ...env, ...options.env } });
  const done = async (args: string[], options: RunOptions = {}) => {
    const result = await run(args, options);
    expect(result).toMatchObject({ exitCode: 0 });
    return result;
  };
  const journal = join(home.path, ".local/state/customers/undo.sqlite");
  return { server, run, done, journal, home: home.path, env };
}

test("several updates are undone one after another, the newest first", async () => {
  const { server, run, done } = place();
  const { id } = server.add({ name: "A", email: "a@example.com" });
  await done(["update", id, "--name", "B"]);
  await done(["update", id, "--name", "C", "--status", "suspended"]);
  const shown = await done(["undo", id, "--dry-run", "-o", "table"]);
  expect(shown.stdout).toContain('name: "C" -> "B"');
  expect(server.read(id)).toMatchObject({ name: "C", status: "suspended" });
  const { stderr } = await done(["undo", id, "--yes"]);
  expect(stderr).toContain('name: "C" -> "B"');
  expect(server.read(id)).toMatchObject({ name: "B", status: "active" });
  await done(["undo", id, "--yes"]);
  expect(server.read(id)).toMatchObject({ name: "A", status: "active" });
  const none = await run(["undo", id, "--yes"]);
  expect(none.exitCode).toBe(1);
  expect(none.stderr).toContain("no change of it");
});

test("someone else's later change is never written over: exit 5, and the change stays recorded", async () => {
  const { server, run, done } = place();
  const { id } = server.add({ name: "A" });
  await done(["update", id, "--name", "B"]);
  server.change(id, { email: "theirs@example.com" });
  const writes = server.writes.length;
  const refused = await run(["undo", id, "--yes"]);
  expect(refused.exitCode).toBe(5);
  expect(refused.stderr).toContain("no longer the version");
  expect(refused.stderr).not.toContain("--if-match");
  expect(refused.stderr).toContain('name: "B" -> "A"'); // what it would write
  expect((await run(["undo", id, "--dry-run"])).exitCode).toBe(5);
  expect(server.writes.length).toBe(writes);
  expect(JSON.parse((await done(["undo", "--list", "-o", "json"])).stdout)).toHaveLength(1);
});

test("a deleted customer is created again, under a new id, once", async () => {
  const { server, run, done } = place();
  const { id } = server.add({ name: "Eve", email: "ada@example.com", status: "closed" });
  for (const name of ["Bea", "Ada"]) await done(["update", id, "--name", name]);
  await done(["delete", id, "--yes"]);
  const { stdout, stderr } = await done(["undo", id, "--yes"]);
  const created = JSON.parse(stdout);
  expect(created.id).not.toBe(id);
  expect(stderr).toContain(`with the new id ${created.id}`);
  expect(server.read(created.id)).toMatchObject({ name: "Ada", email: "ada@example.com", status: "closed" });
  expect((await run(["undo", id, "--yes"])).exitCode).toBe(1);
  expect(server.size).toBe(1);
  // The changes before the deletion are now of the new customer.
  for (const name of ["Bea", "Eve"]) {
    await done(["undo", created.id, "--yes"]);
    expect(server.read(created.id)?.name).toBe(name);
  }
});

test("what an import updated is undone by the ids on standard input", async () => {
  const { server, done, home } = place();
  const ids = ["A", "B"].map((name) => server.add({ name }).id);
  const file = join(home, "rows.csv");
  writeFileSync(file, `id,name\n${ids.map((id) => `${id},New\n`).join("")}`);
  await done(["import", file]);
  expect(server.all().map(({ name }) => name)).toEqual(["New", "New"]);
  const listed = JSON.parse((await done(["undo", "--list", "-o", "json"])).stdout);
  await done(["undo", "-", "--yes"], { stdin: listed.map(({ id }: { id: string }) => id).join("\n") });
  expect(server.all().map(({ name }) => name)).toEqual(["A", "B"]);
});

test("nothing is recorded unless a setting asks for it, and the profile's setting does", async () => {
  const { server, done, journal, run } = place("");
  const { id } = server.add({ name: "A" });
  await done(["update", id, "--name", "B"]);
  expect(existsSync(journal)).toBe(false);
  await done(["profile", "set", "default", "--url", server.url, "--undo", "7d"]);
  await done(["profile", "use", "default"]);
  const bare = { env: { CUSTOMERS_URL: "" } };
  await done(["update", id, "--name", "C"], bare);
  await done(["update", id, "--name", "D"], { env: { CUSTOMERS_UNDO: "off" } });
  expect(JSON.parse((await done(["undo", "--list", "-o", "json"])).stdout)).toHaveLength(1);
  const wrong = await run(["profile", "set", "default", "--undo", "soon"]);
  expect(wrong.exitCode).toBe(2);
  expect(wrong.stderr).toContain("7d");
});

test("what has expired can't be undone", async () => {
  const { server, done, run } = place("1ms");
  const { id } = server.add({ name: "A" });
  await done(["update", id, "--name", "B"]);
  expect((await run(["undo", id, "--yes"])).exitCode).toBe(1);
  expect(server.read(id)?.name).toBe("B");
});

test("--forget deletes what is recorded, and sends nothing", async () => {
  const { server, done } = place();
  const ids = ["A", "B", "C"].map((name) => server.add({ name }).id);
  for (const id of ids) await done(["update", id, "--name", "New"]);
  const requests = server.requests.length;
  await done(["undo", ids[0] ?? "", "--forget"]);
  expect(JSON.parse((await done(["undo", "--list", "-o", "json"])).stdout)).toHaveLength(2);
  const { stderr } = await done(["undo", "--forget"]);
  expect(stderr).toContain("2 recorded changes");
  expect(server.requests.length).toBe(requests);
});

test("an undo asks first; without a terminal it needs --yes", async () => {
  const { server, run, done, home, env } = place();
  const { id } = server.add({ name: "A" });
  await done(["update", id, "--name", "B"]);
  const refused = await run(["undo", id]);
  expect(refused.exitCode).toBe(2);
  expect(refused.stderr).toContain("--yes");
  const asked = { command, home, env, keysAfter: "[y/N]" };
  const no = await runOnTerminal(["undo", id], { ...asked, keys: "n\r" });
  expect(no.exitCode).toBe(1);
  expect(no.screen).toContain('name: "B" -> "A"');
  expect(server.read(id)?.name).toBe("B");
  expect((await runOnTerminal(["undo", id], { ...asked, keys: "y\r" })).exitCode).toBe(0);
  expect(server.read(id)?.name).toBe("A");
});

test("a journal that can't be opened stops the write before it is sent", async () => {
  const { server, run, journal } = place();
  const { id } = server.add({ name: "A" });
  mkdirSync(journal, { recursive: true });
  const { exitCode, stderr } = await run(["update", id, "--name", "B"]);
  expect(exitCode).toBe(2);
  expect(stderr).toContain("CUSTOMERS_UNDO=off");
  expect(server.writes).toEqual([]);
});

test("a write whose earlier values can't be kept is done, and a warning says that it can't be undone", async () => {
  const { server, run, done, journal } = place();
  const { id } = server.add({ name: "A" });
  await done(["undo", "--list"]);
  const database = new Database(journal);
  // As a full disk does: the journal opens, and takes nothing more.
  database.run("CREATE TRIGGER full BEFORE INSERT ON change BEGIN SELECT raise(FAIL, 'full'); END");
  database.close();
  const { exitCode, stderr } = await run(["update", id, "--name", "B", "--quiet"]);
  expect(exitCode).toBe(0);
  expect(stderr).toContain("can't be undone");
  expect(server.read(id)?.name).toBe("B");
});

test("programs that write at the same time lose no entry of the journal", async () => {
  const { server, done } = place();
  const ids = Array.from({ length: 6 }, (_, at) => server.add({ name: `C${at}` }).id);
  await Promise.all(ids.map((id) => done(["update", id, "--name", "New"])));
  const listed = JSON.parse((await done(["undo", "--list", "-o", "json"])).stdout);
  expect(listed.map(({ id }: { id: string }) => id).toSorted()).toEqual(ids.toSorted());
});

test("the journal stays private where it was opened to others", async () => {
  const { done, journal } = place();
  await done(["undo", "--list"]);
  chmodSync(journal, 0o644);
  await done(["undo", "--list"]);
  expect((await Bun.file(journal).stat()).mode & 0o777).toBe(0o600);
});
