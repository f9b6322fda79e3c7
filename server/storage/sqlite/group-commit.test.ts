import { Database } from "bun:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { temporaryDirectory } from "../../tests/support/server-process.ts";
import { StoreUnavailable } from "../customer-store.ts";
import { GROUP_COMMIT_LIMITS, GroupCommit, type GroupCommitLimits } from "./group-commit.ts";

let directory: ReturnType<typeof temporaryDirectory>;
let file: string;
const opened: Database[] = [];

beforeEach(() => {
  directory = temporaryDirectory();
  file = `${directory.path}/numbers.db`;
  const db = open();
  db.run("PRAGMA journal_mode = WAL");
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

function groupCommit(db: Database, limits: Partial<GroupCommitLimits> = {}): GroupCommit {
  return new GroupCommit(db, () => {}, { ...GROUP_COMMIT_LIMITS, ...limits });
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

/** A job's outcome, in words. */
async function wordFor(outcome: Promise<unknown>): Promise<unknown> {
  return await outcome.then(
    (value) => value,
    (error) => (error instanceof StoreUnavailable ? "unavailable" : (error as Error).message),
  );
}

describe("writes of one turn", () => {
  test("share one commit, and each is durable when it is answered", async () => {
    const db = open();
    const writes = groupCommit(db);
    const answers = await Promise.all(
      [1, 2, 3, 4, 5].map(async (n) => {
        const value = await writes.run(() => {
          expect(numbers()).toEqual([]); // seen from outside: none of the batch is committed while one is still to run
          return insert(db, n)();
        });
        expect(numbers()).toEqual([1, 2, 3, 4, 5]);
        return value;
      }),
    );
    expect(answers).toEqual([1, 2, 3, 4, 5]);
  });

  test("end the reads that are under way before anyone learns of them", async () => {
    const db = open();
    const order: string[] = [];
    const writes = new GroupCommit(db, () => order.push("reads end"));
    await writes.run(insert(db, 1)).then(() => order.push("answered"));
    expect(order).toEqual(["reads end", "answered"]);
  });
});

describe("a write that fails", () => {
  test.each([
    ["the first", [7, 1, 2]],
    ["one in the middle", [1, 7, 2]],
    ["the last", [1, 2, 7]],
    ["several", [7, 1, 7, 2, 7]],
  ])("takes no neighbour down: %s", async (_, ns) => {
    open().run("INSERT INTO numbers VALUES (7, NULL)");
    const db = open();
    const writes = groupCommit(db);
    const answers = await Promise.all(ns.map((n) => wordFor(writes.run(insert(db, n)))));
    expect(answers).toEqual(ns.map((n) => (n === 7 ? "UNIQUE constraint failed: numbers.n" : n)));
    expect(numbers()).toEqual([1, 2, 7]);
  });

  test("with its own error leaves nothing of itself behind, and the next write goes on", async () => {
    const db = open();
    const writes = groupCommit(db);
    const halfDone = writes.run(() => {
      insert(db, 1)();
      throw new Error("stopped half way");
    });
    expect(await wordFor(halfDone)).toBe("stopped half way");
    expect(await writes.run(insert(db, 2))).toBe(2);
    expect(numbers()).toEqual([2]);
  });

  test("waits for the lock as any write does when its neighbours are written alone", async () => {
    const db = open();
    const writes = groupCommit(db);
    const other = open();
    // Another process takes the lock in the moment between the batch that failed and the single writes.
    const run: (sql: string) => ReturnType<Database["run"]> = db.run.bind(db);
    const spy = (sql: string): ReturnType<Database["run"]> => {
      const changes = run(sql);
      if (sql === "ROLLBACK" && !other.inTransaction) {
        other.run("BEGIN IMMEDIATE");
        setTimeout(() => other.run("ROLLBACK"), 30);
      }
      return changes;
    };
    Object.defineProperty(db, "run", { value: spy });
    let runs = 0;
    const failsOnce = writes.run(() => {
      runs += 1;
      if (runs === 1) throw new Error("the first run fails");
      return 0;
    });
    const neighbour = writes.run(insert(db, 1));
    expect(await Promise.all([wordFor(failsOnce), wordFor(neighbour)])).toEqual([0, 1]);
    expect(numbers()).toEqual([1]);
  });
});

describe("a commit that fails", () => {
  test("refuses all its writes, acknowledges none, and the next batch goes on", async () => {
    const db = open();
    const writes = groupCommit(db);
    // A reference to a row that isn't there is found by COMMIT alone: a real failure of the commit itself.
    const answers = [1, 2].map((n) => wordFor(writes.run(insert(db, n))));
    const culprit = wordFor(writes.run(insert(db, 3, 99)));
    const refusal = "FOREIGN KEY constraint failed";
    expect(await Promise.all([...answers, culprit])).toEqual([refusal, refusal, refusal]);
    expect(numbers()).toEqual([]);
    expect(await writes.run(insert(db, 4))).toBe(4);
    expect(numbers()).toEqual([4]);
  });

  test("on a full disk is StoreUnavailable, for every write of the batch, until there is room", async () => {
    const db = open();
    db.run("CREATE TABLE blobs (bytes BLOB)");
    const pages = Object.values(db.query<Record<string, number>, []>("PRAGMA page_count").get() ?? {})[0];
    db.run(`PRAGMA max_page_count = ${pages}`);
    const writes = groupCommit(db);
    const big = () => writes.run(() => db.run("INSERT INTO blobs VALUES (zeroblob(100000))"));
    expect(await Promise.all([wordFor(big()), wordFor(big())])).toEqual(["unavailable", "unavailable"]);
    expect(db.inTransaction).toBe(false);
    db.run("PRAGMA max_page_count = 10000");
    await big();
    expect(open().query<{ n: number }, []>("SELECT count(*) AS n FROM blobs").get()?.n).toBe(1);
  });
});

describe("a lock that another process holds", () => {
  test("is waited for while the event loop goes on, and then the writes are made", async () => {
    const db = open();
    const writes = groupCommit(db);
    const other = open();
    other.run("BEGIN IMMEDIATE");
    const write = writes.run(insert(db, 1));
    let turns = 0;
    for (; turns < 20; turns += 1) await new Promise((next) => setTimeout(next, 1));
    expect(turns).toBe(20);
    other.run("ROLLBACK");
    expect(await write).toBe(1);
  });

  test("for longer than the limit makes the waiting writes StoreUnavailable; later ones succeed", async () => {
    const db = open();
    const writes = groupCommit(db, { lockWaitMs: 20 });
    const other = open();
    other.run("BEGIN IMMEDIATE");
    expect(await Promise.all([1, 2].map((n) => wordFor(writes.run(insert(db, n)))))).toEqual([
      "unavailable",
      "unavailable",
    ]);
    other.run("ROLLBACK");
    expect(await writes.run(insert(db, 3))).toBe(3);
    expect(numbers()).toEqual([3]);
  });

  test("lets no more writes wait than the limit; the rest are refused at once", async () => {
    const db = open();
    const writes = groupCommit(db, { pendingMax: 2 });
    const other = open();
    other.run("BEGIN IMMEDIATE");
    const taken = [1, 2].map((n) => writes.run(insert(db, n)));
    expect(await wordFor(writes.run(insert(db, 3)))).toBe("unavailable");
    other.run("ROLLBACK");
    expect(await Promise.all(taken)).toEqual([1, 2]);
    expect(numbers()).toEqual([1, 2]);
  });
});

test("a transaction that something left open is rolled back before the next write, which succeeds", async () => {
  const db = open();
  const writes = groupCommit(db);
  db.run("BEGIN");
  insert(db, 1)();
  expect(await writes.run(insert(db, 2))).toBe(2);
  expect(numbers()).toEqual([2]);
});

test("closing finishes the writes that were taken", async () => {
  const db = open();
  const writes = groupCommit(db);
  const taken = [1, 2, 3].map((n) => writes.run(insert(db, n)));
  await writes.close();
  expect(await Promise.all(taken)).toEqual([1, 2, 3]);
  expect(numbers()).toEqual([1, 2, 3]);
});
