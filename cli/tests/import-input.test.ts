/** Inputs of an import that are no plain files, and rows that no server would take. */
import { afterAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { bulkPlace, csv, namesOf, stopBulkPlaces } from "./support/bulk-place.ts";
import { OURS, UNLIKE_OURS } from "./support/dialect.ts";
import * as faults from "./support/faults.ts";

afterAll(stopBulkPlaces);

const ROWS = csv(["name,email", "A,a@example.com", "B,b@example.com"]);

describe("a pipe", () => {
  async function place() {
    const it = await bulkPlace();
    const pipe = join(it.directory, "pipe");
    expect(await Bun.spawn(["mkfifo", pipe]).exited).toBe(0);
    return { ...it, pipe };
  }

  test("is read once, as stdin is", async () => {
    const { server, pipe, customers } = await place();
    const writer = Bun.spawn(["sh", "-c", `printf %s "$1" > "$2"`, "sh", ROWS, pipe]);
    const { exitCode, stderr } = await customers(["import", pipe]);
    await writer.exited;
    expect([exitCode, stderr]).toEqual([0, expect.stringContaining("2 created")]);
    expect(namesOf(server.all()).toSorted()).toEqual(["A", "B"]);
  });

  test("is named in messages", async () => {
    const { customers } = await place();
    const { exitCode, stderr } = await customers(["import", "/dev/null"]);
    expect(exitCode).toBe(2);
    expect(stderr).toContain("/dev/null: the file is empty");
  });

  test("of a shell's <(…) too", async () => {
    const { server, env, directory, file, command } = await place();
    const script = `"$1" import <(cat "$2")`;
    const child = Bun.spawn(["bash", "-c", script, "bash", ...command, file("rows.csv", ROWS)], {
      cwd: directory,
      env: { PATH: process.env["PATH"] ?? "", HOME: directory, CUSTOMERS_NOTES: "always", ...env },
      stderr: "pipe",
    });
    expect([await child.exited, await child.stderr.text()]).toEqual([
      0,
      expect.stringContaining("2 created"),
    ]);
    expect(server.size).toBe(2);
  });

  test("that nobody writes to is left by SIGTERM", async () => {
    const { server, pipe, start } = await place();
    const child = start(["import", pipe, "--verbose"]);
    // Its reader is there as soon as a writer can open it: nothing is timed.
    const writer = Bun.spawn(["sh", "-c", `exec 3> "$1"; echo open; exec sleep 60`, "sh", pipe], {
      stdout: "pipe",
    });
    const { value } = await writer.stdout.getReader().read();
    expect(new TextDecoder().decode(value)).toBe("open\n");
    child.kill("SIGTERM");
    expect(await child.exited).toBe(130);
    writer.kill();
    await writer.exited;
    expect(server.requests).toHaveLength(0);
  });
});

test.each([
  ["--resume without a journal", ["--resume"], ROWS, "there is nothing to resume"],
  ["the token on it as well", ["--token-stdin"], "cst_token\n", "both the token and the rows"],
])("stdin with %s is refused", async (_, args, stdin, words) => {
  const { server, customers } = await bulkPlace();
  const { exitCode, stderr } = await customers(["import", "-", ...args], { stdin });
  expect([exitCode, server.requests.length]).toEqual([2, 0]);
  expect(stderr).toContain(words);
});

test.each(["rows.csv", "-"])(
  "--resume with a --journal that does not exist sends nothing: import %s",
  async (input) => {
    const { server, file, directory, customers } = await bulkPlace();
    const path = file("rows.csv", ROWS);
    const names = [input === "-" ? input : path, "--journal", join(directory, "journal")];
    const run = await customers(["import", ...names, "--resume"], { stdin: ROWS });
    expect([run.exitCode, server.requests.length]).toEqual([2, 0]);
    expect(run.stderr).toContain("there is nothing to resume");
    expect(run.stderr).toContain("--journal");
    // What the message says to do.
    expect((await customers(["import", ...names], { stdin: ROWS })).exitCode).toBe(0);
    expect(namesOf(server.all()).toSorted()).toEqual(["A", "B"]);
  },
);

test("rows from a pipe that were not done can't be resumed, and the hint says how none is created twice", async () => {
  const { server, through, customers } = await bulkPlace();
  const { env } = await through(faults.dropReplies());
  const run = await customers(["import", "-"], { env, stdin: ROWS });
  expect([run.exitCode, server.size]).toEqual([8, 2]);
  expect(run.stderr).toContain("cannot be resumed");
  expect(run.stderr).toContain("--journal PATH");
  expect(run.stderr).not.toContain("--resume");
  // The next import draws other keys.
  expect(run.stderr).not.toContain("Idempotency-Key");
  expect(run.stderr).toContain("--match email");
  expect((await customers(["import", "-", "--match", "email"], { env, stdin: ROWS })).exitCode).toBe(0);
  expect(server.size).toBe(2);
});

test("--dry-run that stops at an unknown column gives no counts", async () => {
  const { file, customers } = await bulkPlace();
  const run = await customers(["import", file("rows.csv", "name,nmae\nAda,x\n"), "--dry-run", "-o", "json"]);
  expect({ exitCode: run.exitCode, stdout: run.stdout }).toEqual({ exitCode: 6, stdout: "" });
  expect(run.stderr).not.toContain("would");
});

test("--dry-run for programs: stdout is one object of JSON", async () => {
  const { file, customers } = await bulkPlace();
  const run = await customers(["import", file("rows.csv", ROWS), "--dry-run", "-o", "json"]);
  expect(run.exitCode).toBe(0);
  expect(JSON.parse(run.stdout)).toEqual({
    dryRun: true,
    rows: 2,
    created: 2,
    updated: 0,
    unchanged: 0,
    failed: 0,
  });
});

describe("entity-tags", () => {
  test("that a proxy weakens stop the import at its first row, with the explanation", async () => {
    const { server, file, through, customers } = await bulkPlace();
    const ids = Array.from({ length: 50 }, () => server.add({ name: "Old" }).id);
    const { env, proxy } = await through(faults.weakenTags());
    const path = file("rows.csv", csv(["id,name", ...ids.map((id) => `${id},New`)]));
    const { exitCode, stderr } = await customers(["import", path, "--concurrency", "1"], { env });
    expect([exitCode, proxy.seen, server.writes.length]).toEqual([1, 1, 0]);
    expect(stderr).toMatch(/proxy/);
  });

  test.each(['W/"1"', "1"])("of a row that can't be one, %p: the row fails, and says so", async (tag) => {
    const { server, file, customers } = await bulkPlace();
    const { id } = server.add({ name: "Old" });
    const path = file("rows.csv", csv(["id,etag,name", `${id},"${tag.replaceAll('"', '""')}",New`]));
    for (const args of [["--dry-run"], []]) {
      const { exitCode, stderr } = await customers(["import", path, ...args]);
      expect([exitCode, server.writes.length]).toEqual([9, 0]);
      expect(stderr).toContain("is no strong entity-tag");
    }
  });
});

test("a Retry-After beyond --timeout stops the import: it is not asked again and again", async () => {
  const { server, file, through, customers } = await bulkPlace();
  const { env, proxy } = await through(
    faults.answerInstead(429, { which: "writes", times: Number.POSITIVE_INFINITY, retryAfter: 9999 }),
  );
  const { exitCode, stderr } = await customers(["import", file("rows.csv", ROWS), "--concurrency", "1"], {
    env,
  });
  expect([exitCode, proxy.writesSeen, server.size]).toEqual([7, 1, 0]);
  expect(stderr).toContain("Retry-After: 9999");
});

test.each([
  ["below a file", "rows.csv/in.csv", "ENOTDIR"],
  ["with a name that no file can have", `${"x".repeat(300)}.csv`, "ENAMETOOLONG"],
])("an input %s can't be read, which is said: exit 2, nothing sent", async (_, name, code) => {
  const { server, directory, file, customers } = await bulkPlace();
  file("rows.csv", ROWS);
  const { exitCode, stderr } = await customers(["import", join(directory, name)]);
  expect([exitCode, server.requests.length]).toEqual([2, 0]);
  expect(stderr).toContain(`can't be read (${code})`);
});

test.each([
  ["lower", "NAME,Email,sTatus"],
  ["pascal", "NAME,email,status"],
])("columns are fields in any case: a creation spells them by --casing %s", async (casing, header) => {
  const { server, directory, file, customers } = await bulkPlace({
    ...OURS,
    names: casing === "pascal" ? UNLIKE_OURS.names : OURS.names,
  });
  const run = (...args: string[]) => customers(args, { home: directory });
  await run("profile", "set", "p", "--casing", casing);
  await run("profile", "use", "p");
  const path = file("rows.csv", csv([header, "Ada,ada@example.com,suspended"]));
  const dry = await run("import", path, "--dry-run", "-o", "json");
  expect(dry.stderr).toContain(casing === "pascal" ? '{"Name":"Ada","Email":' : '{"name":"Ada","email":');
  const { exitCode, stderr } = await run("import", path);
  expect([exitCode, stderr]).toEqual([0, expect.stringContaining("1 created")]);
  expect(server.all()).toMatchObject([{ name: "Ada", email: "ada@example.com", status: "suspended" }]);
});

test.each([
  ["an import", [], 9],
  ["a quiet one", ["--quiet"], 9],
  ["a dry run", ["--dry-run"], 9],
])(
  "%s with --output json that ends badly: stderr is one object, with the rows among its details",
  async (_, args, code) => {
    const { server, file, customers } = await bulkPlace();
    const { id } = server.add({ name: "Old" });
    const unusable = Array.from({ length: 7 }, () => `${id},1,New`);
    const path = file("rows.csv", csv(["id,etag,name", ...unusable]));
    const { exitCode, stdout, stderr } = await customers(["import", path, "-o", "json", ...args]);
    expect([exitCode, JSON.parse(stdout).failed]).toEqual([code, 7]);
    const { details } = JSON.parse(stderr);
    expect(details).toContainEqual(expect.stringMatching(/^row 1 \(line 2\): /));
  },
);

test.each(["csv", "value"])(
  "--dry-run with --output %s: stdout holds customers, and so nothing",
  async (format) => {
    const { server, file, customers } = await bulkPlace();
    const { id } = server.add({ name: "Old" });
    const path = file("rows.csv", ROWS);
    for (const [args, words] of [
      [["import", path], "create {"],
      [["update", id, "--name", "New"], "PUT http"],
      [["delete", id], "DELETE http"],
      [["create", "--name", "New", "--email", "a@example.com"], "POST http"],
    ] as const) {
      const { exitCode, stdout, stderr } = await customers([...args, "--dry-run", "-o", format]);
      expect([exitCode, stdout, stderr]).toEqual([0, "", expect.stringContaining(words)]);
    }
    expect(server.writes).toHaveLength(0);
  },
);
