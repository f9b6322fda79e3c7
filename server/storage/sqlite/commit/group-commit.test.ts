import { Database } from "bun:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { temporaryDirectory } from "../../../tests/support/service/server-process.ts";
import { StoreUnavailable } from "../../customers/customer-store.ts";
import { FileGuard } from "../files/file-guard.ts";
import { SCHEMA_VERSION } from "../files/schema.ts";
import { GroupCommit, type Job } from "./group-commit.ts";

let directory: ReturnType<typeof temporaryDirectory>;
let file: string;
const opened: Database[] = [];

beforeEach(() => {
  directory = temporaryDirectory();
  file = `${directory.path}/numbers.db`;
  const db = open();
  db.run("PRAGMA journal_mode = WAL");
  db.run(`PRAGMA user_version = ${SCHEMA_VERSION}`);
  db.run(
    "CREATE TABLE numbers (n INTEGER PRIMARY KEY, parent INTEGER REFERENCES numbers DEFERRABLE INITIALLY DEFERRED)",
  );
});
afterEach(() => {
  for (const db of opened.splice(0)) db.close();
  directory.remove();
});

function open(): Database {
  const db = new Database(file);
  db.run("PRAGMA foreign_keys = ON");
  opened.push(db);
  return db;
}

function groupCommit(db: Database, lockWaitMs = 5_000): GroupCommit {
  return new GroupCommit(db, new FileGuard(db), lockWaitMs, () => {});
}

/** What another process would see now. */
function numbers(): number[] {
  const db = open();
  return db
    .query<{ n: number }, []>("SELECT n FROM numbers ORDER BY n")
    .all()
    .map((row) => row.n);
}

const insert =
  (db: Database, n: number, parent: number | null = null) =>
  (): number => {
    db.run("INSERT INTO numbers VALUES (?, ?)", [n, parent]);
    return n;
  };

const module = (name: string) => JSON.stringify(new URL(name, import.meta.url).href);

/** The outcomes of a batch, in words. */
async function words(writes: GroupCommit, ...jobs: Job[]): Promise<unknown[]> {
  return (await writes.commit(jobs)).settled.map((settled) => {
    if (settled.ok) return settled.value;
    return settled.error instanceof StoreUnavailable ? "unavailable" : (settled.error as Error).message;
  });
}

test("a batch shares one commit, and is durable when it is answered", async () => {
  const db = open();
  const jobs = [1, 2, 3, 4, 5].map((n) => () => {
    expect(numbers()).toEqual([]); // seen from outside: none of the batch is committed while one is still to run
    return insert(db, n)();
  });
  expect(await words(groupCommit(db), ...jobs)).toEqual([1, 2, 3, 4, 5]);
  expect(numbers()).toEqual([1, 2, 3, 4, 5]);
});

test("a database that fails one write of a batch is not asked for each of the others", async () => {
  const db = open();
  let calls = 0;
  const fails = (): never => {
    calls += 1;
    throw new StoreUnavailable("SQLITE_IOERR");
  };
  const outcomes = await words(groupCommit(db), insert(db, 1), fails, insert(db, 2));
  expect([...outcomes, calls]).toEqual(["unavailable", "unavailable", "unavailable", 1]);
  expect(numbers()).toEqual([]);
});

describe("a write that fails", () => {
  test.each([
    ["the first", [7, 1, 2]],
    ["one in the middle", [1, 7, 2]],
    ["the last", [1, 2, 7]],
    ["several", [7, 1, 7, 2, 7]],
  ])("does not affect the others: %s", async (_, ns) => {
    open().run("INSERT INTO numbers VALUES (7, NULL)");
    const db = open();
    const writes = groupCommit(db);
    const answers = await words(writes, ...ns.map((n) => insert(db, n)));
    expect(answers).toEqual(ns.map((n) => (n === 7 ? "UNIQUE constraint failed: numbers.n" : n)));
    expect(numbers()).toEqual([1, 2, 7]);
  });

  test("with its own error leaves nothing of itself behind, and the next write goes on", async () => {
    const db = open();
    const writes = groupCommit(db);
    const halfDone = () => {
      insert(db, 1)();
      throw new Error("stopped half way");
    };
    expect(await words(writes, halfDone)).toEqual(["stopped half way"]);
    expect(await words(writes, insert(db, 2))).toEqual([2]);
    expect(numbers()).toEqual([2]);
  });

  test("is run anew with the others, each by itself: they share one transaction with it", async () => {
    const db = open();
    const runs: number[] = [];
    const jobs = [1, 2, 3].map((n) => () => {
      runs.push(n);
      if (n === 2) throw new Error("this one fails");
      return insert(db, n)();
    });
    expect(await words(groupCommit(db), ...jobs)).toEqual([1, "this one fails", 3]);
    expect(runs).toEqual([1, 2, 1, 2, 3]);
    expect(numbers()).toEqual([1, 3]);
  });
});

describe("the times of a commit", () => {
  test("count the writes that changed something, and no others", async () => {
    const db = open();
    insert(db, 1)();
    const nothing = () => db.run("UPDATE numbers SET parent = NULL WHERE n = 99").changes;
    const fails = () => {
      insert(db, 3)();
      throw new Error("stopped half way");
    };
    const { commit } = await groupCommit(db).commit([nothing, insert(db, 2), fails, nothing]);
    expect(commit?.writes).toBe(1);
  });

  test("are null where nothing changed", async () => {
    const db = open();
    const writes = groupCommit(db);
    expect((await writes.commit([insert(db, 1)])).commit?.commitMs).toBeGreaterThan(0);
    for (const refused of [() => "stale", () => db.run("UPDATE numbers SET n = 9 WHERE n = 8")]) {
      expect((await writes.commit([refused])).commit).toBeNull();
      expect(writes.tryOne(refused)).toMatchObject({ settled: [{ ok: true }], commit: null });
    }
  });
});

describe("a commit that fails", () => {
  test("refuses all its writes, acknowledges none, and the next batch goes on", async () => {
    const db = open();
    const writes = groupCommit(db);
    // A reference to a row that isn't there is found by COMMIT alone: a real failure of the commit itself.
    const refusal = "FOREIGN KEY constraint failed";
    expect(await words(writes, insert(db, 1), insert(db, 2), insert(db, 3, 99))).toEqual([
      refusal,
      refusal,
      refusal,
    ]);
    expect(numbers()).toEqual([]);
    expect(await words(writes, insert(db, 4))).toEqual([4]);
    expect(numbers()).toEqual([4]);
  });

  test("on a disk that fails leaves its outcome unknown: what was written may be there after a crash", () => {
    // In a process of its own, which closes the log under SQLite's feet.
    const script = `
      import { closeSync, readdirSync, readlinkSync } from "node:fs";
      import { Database } from "bun:sqlite";
      import { FileGuard } from ${module("../files/file-guard.ts")};
      import { GroupCommit } from ${module("./group-commit.ts")};
      const db = new Database(${JSON.stringify(file)});
      const writes = new GroupCommit(db, new FileGuard(db), 0, () => {});
      const outcome = writes.tryOne(() => {
        db.run("INSERT INTO numbers VALUES (1, NULL)");
        for (const fd of readdirSync("/proc/self/fd")) {
          try { if (readlinkSync("/proc/self/fd/" + fd).endsWith("-wal")) closeSync(Number(fd)); } catch {}
        }
      });
      const { error } = outcome.settled[0];
      console.log(error.message, error.isOutcomeUnknown);
      process.kill(process.pid, "SIGKILL");`;
    const { stdout, stderr } = Bun.spawnSync([process.execPath, "-e", script]);
    expect([stderr.toString(), stdout.toString()]).toEqual(["", "SQLITE_IOERR_WRITE true\n"]);
  });

  test("on a full disk is StoreUnavailable, for every write of the batch, until there is room", async () => {
    const db = open();
    db.run("CREATE TABLE blobs (bytes BLOB)");
    const pages = Object.values(db.query<Record<string, number>, []>("PRAGMA page_count").get() ?? {})[0];
    db.run(`PRAGMA max_page_count = ${pages}`);
    const writes = groupCommit(db);
    const big = () => db.run("INSERT INTO blobs VALUES (zeroblob(100000))").changes;
    expect(await words(writes, insert(db, 1), big, insert(db, 2))).toEqual(Array(3).fill("unavailable"));
    expect(db.inTransaction).toBe(false);
    expect(numbers()).toEqual([]);
    db.run("PRAGMA max_page_count = 10000");
    expect(await words(writes, big)).toEqual([1]);
    expect(open().query<{ n: number }, []>("SELECT count(*) AS n FROM blobs").get()?.n).toBe(1);
  });
});

describe("a lock that another process holds", () => {
  test("is waited for while the event loop goes on, and then the writes are made", async () => {
    const db = open();
    const writes = groupCommit(db);
    const other = open();
    other.run("BEGIN IMMEDIATE");
    const write = words(writes, insert(db, 1));
    let turns = 0;
    for (; turns < 20; turns += 1) await new Promise((next) => setTimeout(next, 1));
    expect(turns).toBe(20);
    other.run("ROLLBACK");
    expect(await write).toEqual([1]);
  });

  test("for longer than the limit makes the waiting writes StoreUnavailable; later ones succeed", async () => {
    const db = open();
    const writes = groupCommit(db, 20);
    const other = open();
    other.run("BEGIN IMMEDIATE");
    expect(writes.tryOne(insert(db, 1))).toBeNull();
    expect(() => writes.probe()).not.toThrow();
    expect(await words(writes, insert(db, 1), insert(db, 2))).toEqual(["unavailable", "unavailable"]);
    other.run("ROLLBACK");
    expect(await words(writes, insert(db, 3))).toEqual([3]);
    expect(numbers()).toEqual([3]);
  });
});

test("a transaction that something left open is rolled back before the next write, which succeeds", async () => {
  const db = open();
  const writes = groupCommit(db);
  db.run("BEGIN");
  insert(db, 1)();
  expect(await words(writes, insert(db, 2))).toEqual([2]);
  expect(numbers()).toEqual([2]);
});

test("a database that may only be read cannot be written: the probe says so", () => {
  const db = new Database(file, { readonly: true });
  opened.push(db);
  expect(() => groupCommit(db).probe()).toThrow(StoreUnavailable);
});

test("what jobs keep is forgotten when another connection has written or a write was undone, and not otherwise", async () => {
  const db = open();
  let forgotten = 0;
  const writes = new GroupCommit(db, new FileGuard(db), 0, () => {
    forgotten += 1;
  });
  const forgottenBy = async (...jobs: Job[]): Promise<number> => {
    const before = forgotten;
    await writes.commit(jobs);
    return forgotten - before;
  };
  await writes.commit([insert(db, 1)]);
  expect(await forgottenBy(insert(db, 2))).toBe(0);
  expect(await forgottenBy(insert(db, 3), insert(db, 4))).toBe(0);
  insert(open(), 5)();
  expect(await forgottenBy(insert(db, 6))).toBe(1);
  expect(await forgottenBy(insert(db, 7))).toBe(0);
  expect(await forgottenBy(insert(db, 7))).toBeGreaterThan(0); // the number is taken
  writes.close();
});

test("a database that a newer version has migrated takes no more writes", async () => {
  const db = open();
  const writes = groupCommit(db);
  expect(await words(writes, insert(db, 0))).toEqual([0]);
  open().run(`PRAGMA user_version = ${SCHEMA_VERSION + 1}`);
  expect(writes.tryOne(insert(db, 1))).toMatchObject({ settled: [{ ok: false }], commit: null });
  expect(await words(writes, insert(db, 1), insert(db, 2))).toEqual(["unavailable", "unavailable"]);
  expect(() => writes.probe()).toThrow("was migrated by a newer version");
  expect(numbers()).toEqual([0]);
});
