/** Every command against a deployment that differs from ours wherever the specification lets it. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { join } from "node:path";
import { runClient, temporaryDirectory } from "./support/client.ts";
import { type CustomerServer, startCustomerServer } from "./support/customer-server.ts";
import { UNLIKE_OURS } from "./support/dialect.ts";
import { startFaultyProxy } from "./support/faulty-proxy.ts";

let server: CustomerServer;
const home = temporaryDirectory();

/** With its credentials header in the profile, as an operator would have it. */
const customers = (...args: string[]) => runClient(args, { home: home.path });

beforeAll(async () => {
  server = startCustomerServer(UNLIKE_OURS);
  await storeProfile("other", `${server.url}/`);
  expect(await customers("profile", "use", "other")).toMatchObject({ exitCode: 0 });
});
afterAll(async () => {
  await server.stop();
  home[Symbol.dispose]();
});

async function storeProfile(name: string, url: string): Promise<void> {
  const { header, value } = UNLIKE_OURS.credentials;
  const credentials = ["--header-env", `${header}: $KEY`, "--casing", "pascal"];
  const set = ["profile", "set", name, "--url", url, ...credentials];
  const stored = await runClient(set, { home: home.path, env: { KEY: value } });
  expect(stored).toMatchObject({ exitCode: 0 });
}

test("get prints what the server said, and fields are found whatever their casing", async () => {
  const { id, tag } = server.add({ name: "Ada" });
  const { stdout } = await customers("get", id, "--with-etag");
  expect(stdout).toContain(
    '"Balance":9007199254740993,"Rate":1.10,"10":"ten","2":[1E5,-0,{"__proto__":null}]',
  );
  expect(JSON.parse(stdout).etag).toBe(tag);
  expect(await customers("get", id, "-o", "value", "--fields", "name")).toMatchObject({ stdout: "Ada\n" });
});

test("update by PUT takes the tag with its comma, slash and blank, and 200 with a body", async () => {
  const { id, tag } = server.add({ name: "Ada", email: "ada@example.com" });
  expect(await customers("update", id, "--email", "new@example.com", "--expect", "NAME=Ada")).toMatchObject({
    exitCode: 0,
  });
  expect(server.writes.at(-1)).toMatchObject({ method: "PUT", ifMatch: tag });
  expect(server.read(id)).toMatchObject({ name: "Ada", email: "new@example.com" });
});

test("a tag is pinned with --if-match just as it was printed", async () => {
  const { id } = server.add({ name: "Ada" });
  const tag = JSON.parse((await customers("get", id, "--with-etag")).stdout).etag;
  expect(await customers("update", id, "--name", "Eve", "--if-match", tag)).toMatchObject({ exitCode: 0 });
  expect(await customers("update", id, "--name", "Zoe", "--if-match", tag)).toMatchObject({ exitCode: 5 });
  expect(server.read(id)?.name).toBe("Eve");
});

test("--expect looks at members that only this deployment has, with all the others", async () => {
  const { id } = server.add({ name: "Ada", status: "active" });
  const expecting = (...expected: string[]) =>
    customers("update", id, "--name", "Eve", ...expected.flatMap((pair) => ["--expect", pair]));
  expect(await expecting("balance=9007199254740992")).toMatchObject({ exitCode: 5 });
  expect(await expecting("balance=9007199254740993", "rate=1.10", "status=closed")).toMatchObject({
    exitCode: 5,
  });
  expect(server.read(id)?.name).toBe("Ada");
  expect(await expecting("balance=9007199254740993", "rate=1.10", "status=active")).toMatchObject({
    exitCode: 0,
  });
  expect(server.read(id)?.name).toBe("Eve");
});

test("names of fields that are not known there: the default set is read", async () => {
  const { id } = server.add({ name: "Ada" });
  const proxy = await startFaultyProxy(server.url, async (exchange) => {
    if (exchange.path.includes("fields="))
      return exchange.answer({ status: 400, headers: {}, body: new Uint8Array() });
    exchange.answer(await exchange.forward());
  });
  await storeProfile("proxied", proxy.url);
  const { exitCode } = await customers("update", id, "--name", "Eve", "--profile", "proxied");
  await proxy.stop();
  expect({ exitCode, name: server.read(id)?.name }).toEqual({ exitCode: 0, name: "Eve" });
});

test("status needs PATCH, which is not there: said so, nothing written", async () => {
  const { id } = server.add({ name: "Ada", status: "active" });
  const writes = server.writes.length;
  const { exitCode, stderr } = await customers("update", id, "--status", "closed");
  expect({ exitCode, writes: server.writes.length }).toEqual({ exitCode: 1, writes });
  expect(stderr).toContain("does not offer PATCH");
});

test("create speaks the profile's casing, list follows the pages, delete is conditional", async () => {
  const created = await customers("create", "--name", "Grace", "--email", "grace@example.com", "--verbose");
  expect(created).toMatchObject({ exitCode: 0 });
  expect(created.stderr).toContain('{"Name":"Grace","Email":"grace@example.com"}');
  const id = JSON.parse(created.stdout).Id;
  const listed = await customers("list", "--all", "--limit", "1", "-o", "value", "--fields", "id");
  expect(listed.stdout.trim().split("\n").sort()).toEqual(
    server
      .all()
      .map((customer) => customer.id)
      .sort(),
  );
  expect(await customers("delete", id, "--yes")).toMatchObject({ exitCode: 0 });
  expect(server.read(id)).toBeUndefined();
});

test("an export changed and imported again changes what was changed", async () => {
  const { id } = server.add({ name: "Mary Shelley" });
  const file = join(home.path, "all.csv");
  expect(await customers("export", "--fields", "id,name,email", file)).toMatchObject({ exitCode: 0 });
  const text = await Bun.file(file).text();
  await Bun.write(file, text.replace("Mary Shelley", "Mary Godwin"));
  expect(await customers("import", file)).toMatchObject({ exitCode: 0 });
  expect(server.read(id)?.name).toBe("Mary Godwin");
});
