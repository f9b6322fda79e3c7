import { Database } from "bun:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { statSync } from "node:fs";
import { temporaryDirectory } from "../../../tests/support/service/server-process.ts";
import { StoreUnavailable } from "../../customers/customer-store.ts";
import { FileGuard } from "../files/file-guard.ts";
import { SCHEMA_VERSION } from "../files/schema.ts";
import { SharedRead } from "./read-transaction.ts";

let directory: ReturnType<typeof temporaryDirectory>;
let file: string;
const opened: Database[] = [];
const reads: SharedRead[] = [];

beforeEach(() => {
  directory = temporaryDirectory();
  file = `${directory.path}/numbers.db`;
  const db = open();
  db.run("PRAGMA journal_mode = WAL");
  db.run("CREATE TABLE numbers (n INTEGER)");
  db.run(`PRAGMA user_version = ${SCHEMA_VERSION}`);
  db.run("INSERT INTO numbers VALUES (1)");
});
afterEach(() => {
  for (const read of reads.splice(0)) read.close();
  for (const db of opened.splice(0)) db.close();
  directory.remove();
});

function open(): Database {
  const db = new Database(file);
  opened.push(db);
  return db;
}

/** Another process's write. */
const write = (n: number): void => void open().run("UPDATE numbers SET n = ?", [n]);
const nextTurn = (): Promise<void> => new Promise((next) => setImmediate(next));

function sharedRead(): { read: SharedRead; number: () => number; db: Database } {
  const db = open();
  const read = new SharedRead(db, new FileGuard(db), true);
  reads.push(read);
  return { db, read, number: () => read.get<{ n: number }>("SELECT n FROM numbers")?.n ?? Number.NaN };
}

describe("reads of one turn", () => {
  test("share a transaction until another process commits, and see that commit in the same turn", async () => {
    const { number, db } = sharedRead();
    for (let n = 2; n < 6; n += 1) {
      expect(number()).toBe(n - 1);
      expect(db.inTransaction).toBe(true);
      write(n);
      expect(number()).toBe(n);
    }
    await nextTurn();
    expect(db.inTransaction).toBe(false);
  });

  test("see a write from the moment at which they are ended for it, in the same turn too", () => {
    const { read, number } = sharedRead();
    expect(number()).toBe(1);
    write(2);
    read.end();
    expect(number()).toBe(2);
  });

  test("hold nothing when the turn is over: the log can be folded in and cut to nothing", async () => {
    const { number } = sharedRead();
    number();
    write(2);
    await nextTurn();
    const checkpoint = open()
      .query<{ busy: number; log: number }, []>("PRAGMA wal_checkpoint(TRUNCATE)")
      .get();
    expect(checkpoint).toMatchObject({ busy: 0, log: 0 });
  });
});

test("reads leave SQLite its locks: without them another process would start the wal-index anew", async () => {
  const { number } = sharedRead();
  const { ino } = statSync(`${file}-shm`);
  // The byte that every process with the database open keeps locked (sqlite.org/walformat.html, section 2.3).
  const locks = async () => (await Bun.file("/proc/locks").text()).includes(`:${ino} 128 128`);
  expect(await locks()).toBe(true);
  for (let count = 0; count < 3; count += 1) number();
  await nextTurn();
  expect(await locks()).toBe(true);
});

describe("a read that fails", () => {
  test("ends the transaction, tells its own error, and the next read is answered", () => {
    const { read, number, db } = sharedRead();
    number();
    const fail = () => read.get("SELECT n FROM no_such_table");
    expect(fail).toThrow("no such table");
    expect(db.inTransaction).toBe(false);
    expect(number()).toBe(1);
  });

  test("because the engine can't answer is StoreUnavailable", async () => {
    const { read, number, db } = sharedRead();
    number();
    await nextTurn();
    db.run("ATTACH ? AS text", [`${directory.path}/text.db`]);
    await Bun.write(`${directory.path}/text.db`, "no database".repeat(1000));
    expect(() => read.get("SELECT 1 FROM text.sqlite_schema")).toThrow(StoreUnavailable);
    expect(number()).toBe(1);
  });
});

test("a database that a newer version has migrated is StoreUnavailable to reads", async () => {
  const { number } = sharedRead();
  expect(number()).toBe(1);
  await nextTurn();
  open().run(`PRAGMA user_version = ${SCHEMA_VERSION + 1}`);
  for (let count = 0; count < 2; count += 1) {
    expect(number).toThrow("was migrated by a newer version");
    await nextTurn();
  }
});

describe("the epoch", () => {
  test("stays while nothing is committed, and is another after each commit of anyone", async () => {
    const { read } = sharedRead();
    const epoch = () => read.run(() => read.epoch);
    const first = epoch();
    await nextTurn();
    expect(epoch()).toBe(first);
    const seen = [first];
    for (let n = 2; n < 6; n += 1) {
      await nextTurn();
      write(n);
      seen.push(epoch());
    }
    expect(new Set(seen).size).toBe(5);
  });

  describe("stays over a commit that it was told of", () => {
    const nothing = () => {};
    const theirs = () => write(-1);
    test.each([
      ["where nobody else has committed", nothing, nothing, nothing, true],
      ["not where another process committed before it was told", theirs, nothing, nothing, false],
      ["not where another process committed just before it", nothing, theirs, nothing, false],
      ["not where another process committed just after it", nothing, nothing, theirs, false],
    ])("%s", async (_, before, justBefore, justAfter, stays) => {
      const { read, number } = sharedRead();
      for (let n = 2; n < 40; n += 1) {
        const known = read.run(() => read.epoch);
        before();
        const keepEpoch = read.endForOwnCommit();
        justBefore();
        write(n);
        justAfter();
        keepEpoch();
        expect(read.run(() => read.epoch) === known).toBe(stays);
        expect(number()).toBe(justAfter === theirs ? -1 : n);
        await nextTurn();
      }
    });

    test("and a commit of another process that comes later is another one", () => {
      const { read } = sharedRead();
      const known = read.run(() => read.epoch);
      const keepEpoch = read.endForOwnCommit();
      write(2);
      keepEpoch();
      expect(read.run(() => read.epoch)).toBe(known);
      write(3);
      expect(read.run(() => read.epoch)).not.toBe(known);
    });
  });

  test("is another at every read on a connection that also writes, since it can't see its own writes", () => {
    const db = new Database(":memory:");
    opened.push(db);
    const read = new SharedRead(db, new FileGuard(db), false);
    reads.push(read);
    expect(read.run(() => read.epoch)).not.toBe(read.run(() => read.epoch));
  });
});
