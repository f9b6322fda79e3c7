import { afterEach, beforeEach, expect, test } from "bun:test";
import { copyFileSync, existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { fillDatabase, MOVED_ROWS, requireMoved } from "../../tests/support/database/moved-database.ts";
import { Workplace } from "../../tests/support/service/server-process.ts";
import { TEST_ORIGIN } from "../../tests/support/service/test-origin.ts";
import { copyDatabase } from "./copy-database.ts";
import { openStorage } from "./open-storage.ts";

let place: Workplace;
let from: string;
let to: string;
beforeEach(() => {
  place = new Workplace();
  [from, to] = [`sqlite:${place.path}/from.db`, `sqlite:${place.path}/to.db`];
});
afterEach(() => place.clear());

const bytes = (url: string): Buffer => readFileSync(url.slice("sqlite:".length));
const ada = { name: "Ada", email: "ada@example.com", status: "active" } as const;

async function addCustomer(url: string): Promise<void> {
  const storage = await openStorage(url);
  await storage.customers.create("zz", ada, Date.now(), null, TEST_ORIGIN);
  await storage.close();
}

test("a copy has every row, tag, token, kept outcome and cursor of its source, whose file stays as it was", async () => {
  const before = await fillDatabase(from);
  const source = bytes(from);
  expect(await copyDatabase(from, to)).toEqual({
    state: "new",
    rows: MOVED_ROWS,
  });
  expect(bytes(from)).toEqual(source);
  expect(readdirSync(place.path).sort()).toEqual(["from.db", "to.db"]);
  await requireMoved(to, before);
});

test("a copy that was stopped after any of its steps resumes, and has no database of its name before its end", async () => {
  const before = await fillDatabase(from);
  let stops = 0;
  for (let isOver = false; !isOver; ) {
    stops += 1;
    let steps = 0;
    const onProgress = (): void => {
      steps += 1;
      // Two steps further each time: the first passes what the last one did.
      if (steps === stops * 2) throw new Error("stopped");
    };
    const copying = copyDatabase(from, to, { onProgress, pageRows: 2 });
    const stopped = await copying.then(
      ({ state }) => state,
      (error: Error) => error.message,
    );
    isOver = stopped !== "stopped";
    expect([stopped, existsSync(`${place.path}/to.db`)]).toEqual(
      isOver ? ["resumed", true] : ["stopped", false],
    );
  }
  expect(stops).toBeGreaterThan(8);
  // Killed between giving the name and saying so.
  copyFileSync(`${place.path}/to.db`, `${place.path}/to.db.copying`);
  expect((await copyDatabase(from, to)).state).toBe("finished");
  expect(existsSync(`${place.path}/to.db.copying`)).toBe(false);
  await requireMoved(to, before);
});

test("a source that changed while its copy was stopped is found out by the comparison", async () => {
  await fillDatabase(from);
  const stop = (): never => {
    throw new Error("stopped");
  };
  await expect(copyDatabase(from, to, { onProgress: stop })).rejects.toThrow("stopped");
  await addCustomer(from);
  await expect(copyDatabase(from, to)).rejects.toThrow(
    /differ in tenants: 4 rows .* and 4 .*To begin anew, remove .*to\.db\.copying/,
  );
});

test("an open source, a target that exists, one that was changed since, and a part of another copy are refused", async () => {
  await fillDatabase(from);
  const storage = await openStorage(from);
  await expect(copyDatabase(from, to)).rejects.toThrow(
    "is open in a running process. Stop the service first",
  );
  await storage.close();

  await addCustomer(to);
  await expect(copyDatabase(from, to)).rejects.toThrow("to.db exists; a copy replaces nothing");

  const other = `sqlite:${place.path}/other.db`;
  await copyDatabase(from, other);
  await addCustomer(other);
  await expect(copyDatabase(from, other)).rejects.toThrow("one of the two has changed since");

  copyFileSync(`${place.path}/to.db`, `${place.path}/new.db.copying`);
  await expect(copyDatabase(from, `sqlite:${place.path}/new.db`)).rejects.toThrow(
    "is a part of a copy from another database",
  );

  writeFileSync(`${place.path}/late.db-wal`, "x");
  await expect(copyDatabase(from, `sqlite:${place.path}/late.db`)).rejects.toThrow(
    "left of an earlier database",
  );
  await expect(copyDatabase(`sqlite:${place.path}/none.db`, to)).rejects.toThrow("does not exist");
});

test("what a killed service left in its write-ahead log is copied too", async () => {
  const running = await openStorage(from);
  await running.customers.create("zz", ada, Date.now(), null, TEST_ORIGIN);
  for (const suffix of ["", "-wal"]) {
    copyFileSync(`${place.path}/from.db${suffix}`, `${place.path}/killed.db${suffix}`);
  }
  await running.close();
  const { rows } = await copyDatabase(`sqlite:${place.path}/killed.db`, to);
  expect(rows.customers).toBe(1);
});

test("while a copy runs, nobody can open its source", async () => {
  await fillDatabase(from);
  const refused: string[] = [];
  let opening: Promise<void> | undefined;
  const onProgress = (): void => {
    opening ??= openStorage(from, { lockWaitMs: 1 }).then(
      () => {},
      (error: Error) => void refused.push(error.message),
    );
  };
  await copyDatabase(from, to, { onProgress });
  await opening;
  expect(refused).toEqual([expect.stringContaining("another process holds its lock")]);
});

test("the command says what it copied; what names no database is refused, and no password is shown", async () => {
  await fillDatabase(from);
  const copied = await place.command(["copy", "--from", from, "--to", to]);
  expect(copied).toMatchObject({ code: 0, stderr: "" });
  expect(copied.stdout).toContain("21 customers of 4 tenants, 4 tokens, 5 idempotency keys");
  for (const [args, sentence] of [
    [["--from", "x", "--to", to], "--from must be sqlite:FILE"],
    [["--from", from, "--to", "postgres://u@h/"], "--to names no database"],
    [["--from", from, "--to", "sqlite::memory:"], "--to must name a file"],
    [["--from", from, "--to", from], "must name two databases"],
    [["--from", from, "--to", "postgres://u@127.0.0.1:1/x"], "The database at 127.0.0.1:1 can't be used"],
    [["--from", "postgres://u@127.0.0.1:1/x", "--to", to], "The database at 127.0.0.1:1 can't be used"],
    [["--from", from, "--to", "postgres://u:secret@127.0.0.1:1/x"], "--to holds a password"],
    [["--from", "postgres://u:secret@127.0.0.1:1/x", "--to", to], "--from holds a password"],
  ] as const) {
    const { code, stdout, stderr } = await place.command(["copy", ...args]);
    expect([code, stdout]).toEqual([1, ""]);
    expect(stderr).toContain(sentence);
    expect(stderr).not.toContain("secret");
  }
});
