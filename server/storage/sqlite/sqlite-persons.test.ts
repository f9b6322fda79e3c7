import { Database } from "bun:sqlite";
import { afterAll, expect, test } from "bun:test";
import { readFileSync, statSync } from "node:fs";
import { NO_BODY } from "../../domain/projection.ts";
import { holdLock } from "../../tests/support/database/held-lock.ts";
import { temporaryDirectory, Workplace } from "../../tests/support/service/server-process.ts";
import { TEST_ORIGIN } from "../../tests/support/service/test-origin.ts";
import { personStoreContract } from "../person-store.contract.ts";
import { SqliteStorage } from "./sqlite-storage.ts";

const directory = temporaryDirectory();
afterAll(directory.remove);

for (const where of ["inline", "thread"] as const) {
  const path = `${directory.path}/${where}.db`;
  await personStoreContract(`SQLite, committed ${where}`, () =>
    SqliteStorage.open(path, { chooseWhere: () => where }),
  );
}

test("nothing of an erased person is left in the bytes of the file and its log", async () => {
  const path = `${directory.path}/bytes.db`;
  const storage = SqliteStorage.open(path);
  const { customers, persons } = storage;
  const origin = { ...TEST_ORIGIN, keepsValues: true };
  // Long, so that pages fill, split and become free.
  const name = (n: number) => `Unmistakable ${n} ${"x".repeat(150)}`;
  const ids: string[] = [];
  for (let n = 0; n < 200; n += 1) {
    const customer = { name: name(n), email: `unmistakable${n}@example.com`, status: "active" } as const;
    const made = await customers.create("t", customer, 0, null, origin);
    if (made.kind !== "created") throw new Error(made.kind);
    const target = { tenant: "t", id: made.id, expected: { anyExcept: [] } };
    await customers.update(target, { name: name(n + 1_000) }, NO_BODY, null, origin);
    ids.push(made.id);
  }
  const bytes = () => ["", "-wal"].map((suffix) => readFileSync(`${path}${suffix}`, "latin1")).join("");
  expect(bytes()).toContain("Unmistakable");
  for (const id of ids) await persons.erase("t", id);
  expect(await persons.emptyLog()).toBe(true);
  expect(bytes()).not.toMatch(/unmistakable/i);
  await storage.close();
});

const ADA = { name: "Ada", email: "ada@example.com", status: "active" } as const;

/** A reader of the database as it is now. @returns what ends it */
function hold(path: string): () => void {
  const reader = new Database(path);
  reader.run("BEGIN");
  reader.query("SELECT count(*) FROM customers").get();
  return () => reader.close();
}

test("the log is emptied as soon as its readers have ended, and others write meanwhile", async () => {
  const path = `${directory.path}/log.db`;
  const storage = SqliteStorage.open(path, { lockWaitMs: 60_000 });
  const other = SqliteStorage.open(path, { lockWaitMs: 0 });
  const create = async ({ customers }: SqliteStorage) =>
    (await customers.create("t", ADA, 0, null, TEST_ORIGIN)).kind;
  const end = hold(path);
  await create(storage);
  const emptying = storage.persons.emptyLog();
  expect(await create(other)).toBe("created");
  end();
  expect(await emptying).toBe(true);
  expect(statSync(`${path}-wal`).size).toBe(0);
  await Promise.all([storage.close(), other.close()]);
});

test("the log that can't be emptied, and an erasure that is cut off, are reported with the ids to repeat it", async () => {
  const place = new Workplace();
  try {
    place.makeDirectory();
    const storage = SqliteStorage.open(place.database);
    const made = await storage.customers.create("t", ADA, 0, null, TEST_ORIGIN);
    if (made.kind !== "created") throw new Error(made.kind);
    const end = hold(place.database);
    const log = () => statSync(`${place.database}-wal`).size;
    const erase = (...who: string[]) => place.run(["person", "erase", ...who, "--yes"], { LOCK_WAIT: "0" });
    const again = `Repeat: \`customers-server person erase --yes ${made.id}\`.`;
    const lock = await holdLock(place.database);
    const cutOff = await erase(ADA.email);
    expect([cutOff.code, cutOff.stdout]).toEqual([1, ""]);
    expect(cutOff.stderr).toStartWith(`The erasure was cut off. ${again}\n`);
    await lock.release();
    const erased = await erase(ADA.email);
    expect(erased.code).toBe(0);
    expect(erased.stderr).toContain(`which still holds what was erased. ${again}\n`);
    const unknown = await erase(ADA.email);
    expect([unknown.code, unknown.stderr]).toEqual([
      1,
      expect.stringMatching(/holds what was erased\. Repeat the command\.\nNot found: ada@example\.com\. /),
    ]);
    expect(log()).toBeGreaterThan(0);
    end();
    expect((await erase(made.id)).stderr).not.toContain("write-ahead log");
    expect(log()).toBe(0);
    await storage.close();
  } finally {
    await place.clear();
  }
});
