import { Database } from "bun:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { drawRowVersion } from "../../../domain/entity-tag.ts";
import { projectionOf } from "../../../domain/projection.ts";
import { temporaryDirectory } from "../../../tests/support/service/server-process.ts";
import { TEST_ORIGIN } from "../../../tests/support/service/test-origin.ts";
import { type IdempotencyKey, StoreUnavailable, type WriteTarget } from "../../customers/customer-store.ts";
import type { Commit } from "../../storage.ts";
import { connect, openDatabase } from "../files/sqlite-database.ts";
import { SqliteStorage } from "../sqlite-storage.ts";

/**
 * Every Worker that was started, so that a test can end one
 * from outside: what a crash of the thread looks like.
 */
const started: Worker[] = [];
const RealWorker = globalThis.Worker;

let directory: ReturnType<typeof temporaryDirectory>;
let path: string;
let commits: Commit[];
let faults: string[];
/** Thrown by onCommit, which stands for any bug that is not a write's own. */
let bug: Error | null;
let storage: SqliteStorage;
beforeEach(() => {
  directory = temporaryDirectory();
  path = `${directory.path}/customers.db`;
  commits = [];
  faults = [];
  bug = null;
  globalThis.Worker = class extends RealWorker {
    constructor(...args: ConstructorParameters<typeof RealWorker>) {
      super(...args);
      started.push(this);
    }
  };
});
afterEach(async () => {
  globalThis.Worker = RealWorker;
  started.splice(0);
  await storage.close();
  directory.remove();
});

/** @param where null to let the queue decide */
async function open(where: Commit["where"] | null): Promise<void> {
  storage = SqliteStorage.open(path, {
    hasWriterThread: where !== "inline", // A thread that commits nothing would only cost time.
    onCommit: (commit) => {
      if (bug !== null) throw bug;
      commits.push(commit);
    },
    onFault: (sentence) => faults.push(sentence),
    ...(where === null ? {} : { chooseWhere: () => where }),
  });
  await storage.ready;
}

const create = (name: string, status = "active", key: IdempotencyKey | null = null) =>
  storage.customers.create("t", { name, email: "a@b", status: status as "active" }, 0, key, TEST_ORIGIN);
const KEY: IdempotencyKey = { tokenId: "ab".repeat(16), key: "k", digest: "00".repeat(32), nowMs: 1 };
const STALE = drawRowVersion();
const turn = () => new Promise((next) => setImmediate(next));

/** What another process would see now. */
function names(): string[] {
  const db = new Database(path, { readonly: true });
  try {
    return db
      .query<{ name: string }, []>("SELECT name FROM customers ORDER BY name")
      .all()
      .map((row) => row.name);
  } finally {
    db.close();
  }
}

const isUnavailable = (outcome: PromiseSettledResult<unknown>): boolean =>
  outcome.status === "rejected" && outcome.reason instanceof StoreUnavailable;

describe.each(["inline", "thread"] as const)("committed %s", (where) => {
  beforeEach(() => open(where));

  test("a write is on the disk when it is answered", async () => {
    for (const name of ["a", "b", "c"]) {
      await create(name);
      expect(names()).toContain(name);
    }
    expect(commits.map((commit) => [commit.writes, commit.where])).toEqual(Array(3).fill([1, where]));
  });

  test.each<[string, (target: WriteTarget) => Promise<{ kind: string } | number>, string | number]>([
    [
      "stale",
      (target) => storage.customers.remove({ ...target, expected: STALE }, null, TEST_ORIGIN),
      "stale",
    ],
    [
      "missing",
      (target) => storage.customers.remove({ ...target, tenant: "other" }, null, TEST_ORIGIN),
      "missing",
    ],
    ["a replay", () => create("kept", "active", KEY), "created"],
    ["of a used key", () => create("kept", "active", { ...KEY, digest: "01".repeat(32) }), "key-reused"],
    ["a purge of no keys", () => storage.customers.purgeKeys(0), 0],
  ])("a write that changes nothing is no commit: %s", async (_, write, outcome) => {
    const created = await create("kept", "active", KEY);
    if (created.kind !== "created") throw new Error(created.kind);
    await turn();
    const before = [...commits];
    const result = await write({ tenant: "t", id: created.id, expected: created.rowVersion });
    expect(typeof result === "number" ? result : result.kind).toBe(outcome);
    expect(commits).toEqual(before);
  });

  test("the time of a commit does not include the wait for another process's lock", async () => {
    const blocker = new Database(path);
    blocker.run("BEGIN IMMEDIATE");
    const write = create("waited");
    await turn();
    await turn();
    blocker.run("ROLLBACK");
    const releasedAt = performance.now();
    blocker.close();
    await write;
    expect(commits[0]?.ms).toBeLessThan(performance.now() - releasedAt);
  });

  test.each([1, 20])(
    "an error that is no write's own refuses its batch; the next goes on: %d writes",
    async (count) => {
      bug = new Error("a bug");
      const writes = Array.from({ length: count }, () => create("a"));
      for (const outcome of await Promise.allSettled(writes)) {
        expect(outcome).toEqual({ status: "rejected", reason: bug });
      }
      bug = null;
      expect((await create("b")).kind).toBe("created");
      expect(storage.stats().writesWaiting).toBe(0);
    },
  );

  test("a write that fails does not affect the others, and its error is reported", async () => {
    const outcomes = await Promise.allSettled([
      ...Array.from({ length: 20 }, (_, n) => create(`${n + 10}`)),
      create("x", "open"),
      create("z"),
    ]);
    const failed = outcomes.filter(({ status }) => status === "rejected");
    expect(failed).toHaveLength(1);
    expect(String((failed[0] as PromiseRejectedResult).reason)).toContain("CHECK constraint failed");
    expect(names()).toHaveLength(21);
  });

  test("a lock held by another process holds up writes and not reads; then they are made", async () => {
    const blocker = new Database(path);
    blocker.run("BEGIN IMMEDIATE");
    const write = create("waited");
    for (let count = 0; count < 20; count += 1) {
      await new Promise((next) => setTimeout(next, 1));
      const query = { tenant: "t", after: null, limit: 1, status: null, email: null };
      expect(storage.customers.page(query, projectionOf(["id"])).items).toEqual([]);
    }
    expect(storage.stats().writesWaiting).toBe(1);
    blocker.run("ROLLBACK");
    blocker.close();
    await write;
    expect(names()).toEqual(["waited"]);
  });

  test("closing finishes the writes that were taken, and takes no more", async () => {
    const taken = Array.from({ length: 20 }, (_, n) => create(`${n}`));
    const closed = storage.close();
    expect(isUnavailable((await Promise.allSettled([create("late")]))[0])).toBe(true);
    await closed;
    expect(await Promise.all(taken)).toHaveLength(20);
    expect(names()).toHaveLength(20);
    await open(where);
  });

  test("a burst shares commits, but for the first few", async () => {
    for (let round = 0; round < 10; round += 1) {
      await Promise.all(Array.from({ length: 64 }, (_, n) => create(`${n}`)));
    }
    // Eight in each of the ten rounds if the burst were not seen;
    // a stalled machine may make it look over now and then.
    expect(commits.length).toBeLessThanOrEqual(50);
    expect(commits.reduce((sum, { writes }) => sum + writes, 0)).toBe(640);
  });
});

test("a write that comes alone is committed before the call returns", async () => {
  await open("inline");
  for (let count = 1; count <= 20; count += 1) {
    const write = create("x");
    expect(commits).toHaveLength(count);
    await write;
    await turn();
  }
});

test("a batch too large for the event loop goes to the thread, however fast the disk is", async () => {
  await open(null);
  await Promise.all(Array.from({ length: 300 }, (_, n) => create(`${n}`)));
  const large = commits.filter(({ writes }) => writes > 16);
  expect(large.length).toBeGreaterThan(0);
  expect(large.map(({ where }) => where)).toEqual(large.map(() => "thread"));
});

test("no read is under way when a commit ends: the write-ahead log can start anew", async () => {
  await open("inline");
  const db = connect(path);
  const reading: boolean[] = [];
  const onCommit = () => reading.push(db.inTransaction);
  const watched = new SqliteStorage(db, connect(path), { onCommit });
  const { customers } = watched;
  const write = (): Promise<unknown> => {
    customers.rowVersion("t", "x");
    expect(db.inTransaction).toBe(true);
    return customers.create("t", { name: "a", email: "a@b", status: "active" }, 0, null, TEST_ORIGIN);
  };
  await Promise.all(Array.from({ length: 20 }, write));
  await watched.close();
  expect(new Set(reading)).toEqual(new Set([false]));
});

test("no more writes wait than the limit; the rest are refused at once", async () => {
  openDatabase(path).close();
  storage = new SqliteStorage(connect(path), connect(path), {
    limits: { lockWaitMs: 5_000, pendingMax: 2 },
  });
  const blocker = new Database(path);
  blocker.run("BEGIN IMMEDIATE");
  const outcomes = Promise.allSettled(["a", "b", "c", "d"].map((name) => create(name)));
  await turn();
  blocker.run("ROLLBACK");
  blocker.close();
  expect((await outcomes).map(isUnavailable)).toEqual([false, false, true, true]);
  expect(names()).toEqual(["a", "b"]);
});

test("a thread that dies fails the writes that it had, keeps every one that was answered, and is replaced", async () => {
  await open("thread");
  await create("before");
  const blocker = new Database(path);
  blocker.run("BEGIN IMMEDIATE"); // so that the batch is still under way when its thread dies
  const settled = Promise.allSettled([1, 2, 3].map((n) => create(`lost ${n}`)));
  await turn(); // the batch has left
  started.at(-1)?.terminate();
  expect((await settled).map(isUnavailable)).toEqual([true, true, true]);
  blocker.run("ROLLBACK");
  blocker.close();
  expect(faults).toHaveLength(1);
  expect(started).toHaveLength(2);
  await create("after");
  expect(names()).toEqual(["after", "before"]);
});

test("a process does not end while its thread has a batch: the write is answered, and the store closed", async () => {
  await open("inline");
  const blocker = new Database(path);
  blocker.run("BEGIN IMMEDIATE");
  const module = (name: string) => JSON.stringify(new URL(name, import.meta.url).href);
  // In a function: a module that awaits keeps its process alive.
  const script = `import { SqliteStorage } from ${module("../sqlite-storage.ts")};
    async function run() {
      const storage = SqliteStorage.open(${JSON.stringify(path)}, { chooseWhere: () => "thread", lockWaitMs: 100 });
      const alive = setInterval(() => {}, 1000);
      await storage.ready;
      clearInterval(alive);
      const customer = { name: "a", email: "a@b", status: "active" };
      const write = storage.customers.create("t", customer, 0, null, ${JSON.stringify(TEST_ORIGIN)});
      console.log(await write.catch(({ message }) => message));
      await storage.close();
      console.log("closed");
    }
    void run();`;
  const child = Bun.spawn([process.execPath, "-e", script], { stderr: "inherit" });
  expect(await child.stdout.text()).toBe("another process holds the lock\nclosed\n");
  blocker.close();
});

test("a thread that cannot be started ends nothing: commits are inline", async () => {
  globalThis.Worker = class extends RealWorker {
    constructor() {
      super("data:text/javascript,process.exit(1)");
    }
  };
  await open("thread");
  await create("a");
  expect(commits.map(({ where }) => where)).toEqual(["inline"]);
  expect(faults).toHaveLength(1);
});
