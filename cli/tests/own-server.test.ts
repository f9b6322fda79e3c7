/** The client against this project's own service, as two programs that share nothing but HTTP. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { runClient, temporaryDirectory } from "./support/client.ts";
import { dropReplies } from "./support/faults.ts";
import { startFaultyProxy } from "./support/faulty-proxy.ts";
import { type Service, startService } from "./support/service.ts";

let service: Service;

beforeAll(async () => {
  service = await startService(["editor", "viewer", "support", "clerk"]);
});
afterAll(() => service.stop());

const as = (role: string, ...args: string[]) =>
  runClient(args, {
    env: { CUSTOMERS_URL: service.url, CUSTOMERS_TOKEN: service.tokens[role] ?? "" },
  });
async function created(name: string): Promise<string> {
  const { stdout } = await as(
    "editor",
    "create",
    "--name",
    name,
    "--email",
    `${name.toLowerCase()}@example.com`,
    "-o",
    "value",
    "--fields",
    "id",
  );
  return stdout.trim();
}

test("create, get, list, update, search, delete", async () => {
  const id = await created("Ada");
  expect((await as("editor", "get", id, "--fields", "name,status")).stdout).toBe(
    '{"name":"Ada","status":"active"}\n',
  );
  expect(await as("editor", "update", id, "--name", "Eve", "--status", "closed")).toMatchObject({
    exitCode: 0,
  });
  expect((await as("editor", "list", "--status", "closed", "-o", "value", "--fields", "id")).stdout).toBe(
    `${id}\n`,
  );
  expect(
    (await as("editor", "list", "--email", "ada@example.com", "-o", "value", "--fields", "id,name")).stdout,
  ).toBe(`${id}\tEve\n`);
  expect(await as("editor", "delete", id, "--yes")).toMatchObject({ exitCode: 0 });
  expect(await as("editor", "get", id)).toMatchObject({ exitCode: 4 });
});

test("ten writers of one field: all succeed, and each made one version", async () => {
  const id = await created("Contended");
  const runs = await Promise.all(
    Array.from({ length: 10 }, (_, at) => as("editor", "update", id, "--name", `Writer ${at}`)),
  );
  expect(runs.map(({ exitCode }) => exitCode)).toEqual(new Array(10).fill(0));
  const steps = runs.map(({ stderr }) => /updated: .* tag (".*") -> (".*?");/.exec(stderr)?.[2]);
  expect(new Set(steps).size).toBe(10);
  const last = JSON.parse((await as("editor", "get", id, "--with-etag")).stdout).etag;
  expect(steps).toContain(last);
});

test("a creation repeated with its key is one", async () => {
  const twice = ["create", "--name", "Once", "--email", "once@example.com", "--idempotency-key", "once-1"];
  const first = await as("editor", ...twice);
  const second = await as("editor", ...twice);
  expect(second.stdout).toBe(first.stdout);
  expect(second.stderr).toContain("created earlier");
});

test("who may not read the address may still change the name, and leaves the address alone", async () => {
  const id = await created("Hidden");
  expect(await as("clerk", "update", id, "--name", "Renamed")).toMatchObject({ exitCode: 0 });
  expect((await as("editor", "get", id, "-o", "value", "--fields", "name,email")).stdout).toBe(
    "Renamed\thidden@example.com\n",
  );
  expect(await as("clerk", "update", id, "--email", "new@example.com")).toMatchObject({ exitCode: 3 });
});

test("an import whose replies are lost is resumed by row, and what export writes imports as unchanged", async () => {
  using directory = temporaryDirectory();
  const proxy = await startFaultyProxy(service.url, dropReplies(3));
  const env = { CUSTOMERS_URL: proxy.url, CUSTOMERS_TOKEN: service.tokens["editor"] ?? "" };
  const [input, all] = [join(directory.path, "in.csv"), join(directory.path, "all.csv")];
  const rows = Array.from({ length: 20 }, (_, at) => `Bulk ${at},bulk@example.com,suspended\n`);
  await Bun.write(input, `name,email,status\n${rows.join("")}`);
  const lost = await runClient(["import", input], { env });
  expect([lost.exitCode, lost.stderr]).toEqual([8, expect.stringContaining("unknown outcome of 3 rows")]);
  const resumed = await runClient(["import", input, "--resume"], { env });
  expect([resumed.exitCode, resumed.stderr]).toEqual([0, expect.stringContaining("20 created")]);
  await as("editor", "export", all, "--email", "bulk@example.com", "--with-etag");
  const exported = (await Bun.file(all).text()).trimEnd().split("\n");
  expect(exported[0]).toBe("etag,id,name,email,status");
  expect(exported).toHaveLength(21);
  const again = await as("editor", "import", all);
  expect([again.exitCode, again.stderr]).toEqual([0, expect.stringContaining("20 unchanged")]);
  await proxy.stop();
});

test.each([["--name"], ["--status"]])(
  "a conflict of %s with --if-match names its request, in the reply or in the refusal",
  async (field) => {
    const id = await created("Pinned");
    const { exitCode, stderr } = await as(
      "editor",
      "update",
      id,
      field,
      "closed",
      "--if-match",
      '"old"',
      "-o",
      "json",
    );
    expect({ exitCode, ...JSON.parse(stderr) }).toMatchObject({
      exitCode: 5,
      requestId: expect.stringMatching(/./),
      message: expect.stringContaining('version "old" that --if-match names'),
    });
  },
);

describe("refusals say what to do", () => {
  test.each([
    ["a field that the role may not read", "support", ["--fields", "email"], 3, "not allow"],
    ["an unknown field", "viewer", ["--fields", "nmae"], 6, 'Did you mean "name"?'],
  ])("%s", async (_, role, args, exitCode, words) => {
    const ended = await as(role, "get", await created("Refused"), ...args);
    expect({ exitCode: ended.exitCode, stdout: ended.stdout }).toEqual({ exitCode, stdout: "" });
    expect(ended.stderr).toContain(words);
    expect(ended.stderr).toContain("request id");
  });

  test("a role that may not write: exit 3; a value that is not allowed: exit 6, with its pointer", async () => {
    const id = await created("Refused");
    expect(await as("viewer", "update", id, "--name", "Eve")).toMatchObject({ exitCode: 3 });
    const invalid = await as("editor", "update", id, "--status", "clsed");
    expect(invalid.exitCode).toBe(6);
    expect(invalid.stderr).toContain("/status: ");
  });
});

test("a service that limits its callers is waited for: each row is imported once, each update written once", async () => {
  const limited = await startService(
    ["editor", "viewer"],
    {},
    "[limits.clients.editor]\nwrites = { per_second = 1, burst = 1 }\n",
  );
  try {
    const run = (role: string, ...args: string[]) =>
      runClient(args, { env: { CUSTOMERS_URL: limited.url, CUSTOMERS_TOKEN: limited.tokens[role] ?? "" } });
    const refusals = (stderr: string) => stderr.match(/< 429$/gm)?.length ?? 0;
    const list = async (field: string) =>
      (await run("viewer", "list", "-o", "value", "--fields", field)).stdout.trim().split("\n").sort();

    using directory = temporaryDirectory();
    const path = join(directory.path, "in.csv");
    const names = ["Ada", "Edsger", "Grace"];
    await Bun.write(path, ["name,email", ...names.map((name) => `${name},x@example.com`), ""].join("\n"));
    const imported = await run("editor", "import", path, "--verbose");
    expect([imported.exitCode, await list("name")]).toEqual([0, names]);
    expect(refusals(imported.stderr)).toBeGreaterThan(0);

    const updated = await run("editor", "update", ...(await list("id")), "--name", "Eve", "--verbose");
    expect([updated.exitCode, await list("name")]).toEqual([0, ["Eve", "Eve", "Eve"]]);
    expect(refusals(updated.stderr)).toBeGreaterThan(0);
  } finally {
    await limited.stop();
  }
});
