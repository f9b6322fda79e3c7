import { Database } from "bun:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import {
  copyFileSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
} from "node:fs";
import { namesIn } from "../../../tests/support/database/database-files.ts";
import { temporaryDirectory } from "../../../tests/support/service/server-process.ts";
import { TEST_ORIGIN } from "../../../tests/support/service/test-origin.ts";
import { StoreUnavailable } from "../../customers/customer-store.ts";
import type { Commit } from "../../storage.ts";
import { drawToken } from "../../tokens/bearer-token.ts";
import { GroupCommit } from "../commit/group-commit.ts";
import { SqliteStorage } from "../sqlite-storage.ts";
import { FileGuard } from "./file-guard.ts";
import { restoreDatabase } from "./restore.ts";
import { LOG_BYTES_MAX, openDatabase } from "./sqlite-database.ts";

const RealWorker = globalThis.Worker;
const started: Worker[] = [];

let directory: ReturnType<typeof temporaryDirectory>;
let path: string;
let away: string;
let log: string;
let index: string;
let storage: SqliteStorage;
let where: Commit["where"];
/**
 * With the writer's thread, as a service has it, where it commits or holds the files open beside this one. Without it
 * the guards of this thread do the same, and the storage opens in a tenth of the processor time.
 */
async function open(hasWriterThread: boolean): Promise<void> {
  storage = SqliteStorage.open(path, hasWriterThread ? { chooseWhere: () => where } : {});
  await storage.ready;
  await create("before");
}
beforeEach(async () => {
  directory = temporaryDirectory();
  path = `${directory.path}/customers.db`;
  [away, log, index] = [`${directory.path}/away.db`, `${path}-wal`, `${path}-shm`];
  globalThis.Worker = class extends RealWorker {
    constructor(...args: ConstructorParameters<typeof RealWorker>) {
      super(...args);
      started.push(this);
    }
  };
  where = "inline";
});
afterEach(async () => {
  globalThis.Worker = RealWorker;
  started.splice(0);
  await storage.close();
  directory.remove();
});

const create = (name: string) =>
  storage.customers.create("default", { name, email: "a@b", status: "active" }, 0, null, TEST_ORIGIN);
const fault = (write: Promise<unknown>) =>
  write.then(
    () => "acknowledged",
    (error) => (error instanceof StoreUnavailable ? error.message : error),
  );

/**
 * What the next start would find after kill -9 now: the
 * files as they stand there, without a word of this process.
 */
async function namesAfterKill(database = path): Promise<string[]> {
  const copy = `${directory.path}/after.db`;
  for (const suffix of ["", "-wal"]) {
    rmSync(`${copy}${suffix}`, { force: true });
    if (statSync(`${database}${suffix}`, { throwIfNoEntry: false })) {
      copyFileSync(`${database}${suffix}`, `${copy}${suffix}`);
    }
  }
  return await namesIn(copy);
}

const rmAll = (...files: string[]) => {
  for (const file of files) rmSync(file);
};
const replace = (file: string, by: string) => {
  renameSync(file, by);
  copyFileSync(by, file);
};
const replaced = () => replace(path, away);
const CASES: [string, () => void, string][] = [
  ["moved", () => renameSync(path, away), "customers.db is not the file that was opened"],
  ["deleted", () => rmSync(path), "customers.db was deleted or replaced. All that it held is in"],
  ["replaced", replaced, "customers.db is not the file that was opened"],
  ["truncated", () => truncateSync(path, 0), "customers.db was truncated. Stop the service and run `check`"],
  ["with its log deleted", () => rmSync(log), "customers.db-wal was deleted or replaced"],
  ["with its log replaced", () => replace(log, away), "customers.db-wal was deleted or replaced"],
  [
    "with its log truncated",
    () => truncateSync(log, 0),
    "customers.db-wal was truncated. Stop the service and run `check`",
  ],
  // A truncated index would be SIGBUS inside SQLite, which nothing can catch.
  ["with its index deleted", () => rmSync(index), "customers.db-shm was deleted or replaced"],
  ["with its index replaced", () => replace(index, away), "customers.db-shm was deleted or replaced"],
  [
    "with its log and its index deleted",
    () => rmAll(log, index),
    "customers.db-wal was deleted or replaced. Its writes were brought into",
  ],
  [
    "in a directory that cannot be looked at",
    () => {
      renameSync(directory.path, `${directory.path}.old`);
      symlinkSync(directory.path, directory.path);
    },
    "cannot be looked at",
  ],
];

describe.each(["inline", "thread"] as const)("committed %s, a database", (place) => {
  test.each(CASES)("%s takes no writes and is not ready", async (title, disturb, says) => {
    where = place;
    await open(true);
    disturb();
    for (let count = 0; count < 3; count += 1) {
      expect(await fault(create("lost"))).toContain(says);
      expect(() => storage.ping()).toThrow(says);
    }
    if (title.startsWith("in a directory")) {
      rmSync(directory.path);
      renameSync(`${directory.path}.old`, directory.path);
      expect(await fault(create("after"))).toBe("acknowledged");
    }
  });
});

/** Reads look at the files now and then, so one may be answered just after they changed. */
async function readFault(): Promise<string> {
  for (;;) {
    const found = await fault((async () => storage.tokens.find(drawToken(), 0))());
    if (found !== "acknowledged") return found;
    await new Promise((next) => setImmediate(next));
  }
}

test.each(CASES.filter(([, , says]) => /not the file that|deleted or replaced/.test(says)))(
  "a database %s answers no read: a token that another process revoked would be valid here",
  async (_, disturb, says) => {
    await open(false);
    disturb();
    expect(await readFault()).toContain(says);
  },
);

test("a database that was put back answers reads again", async () => {
  await open(false);
  renameSync(path, away);
  expect(await readFault()).toContain("is not the file that was opened");
  renameSync(away, path);
  expect(storage.tokens.find(drawToken(), 0)).toBeNull();
});

test.each([
  ["its log was", () => rmSync(log)],
  ["its log and its index were", () => rmAll(log, index)],
])("nothing that was acknowledged is lost, once it was noticed that %s deleted", async (_, disturb) => {
  await open(true);
  disturb();
  expect(() => storage.ping()).toThrow("restart the service");
  expect(await namesAfterKill()).toEqual(["before"]);
});

/** As `cp`, then `mv`, or rsync does: the file that was opened has no name any more. */
function replacedByItsCopy(): void {
  copyFileSync(path, away);
  renameSync(away, path);
}

describe.each([
  ["deleted", () => rmSync(path)],
  ["deleted with its log and its index", () => rmAll(path, log, index)],
  ["replaced by its copy", replacedByItsCopy],
])("a database that was %s under a service", (_, disturb) => {
  const saved = () => `${path}.saved`;

  test.each([
    ["by a write", () => fault(create("lost"))],
    ["by a read", () => readFault()],
    ["at the end", () => storage.close()],
  ])("is saved with its last writes, once that is noticed %s", async (_, notice) => {
    await open(true);
    disturb();
    await notice();
    expect(await namesIn(saved())).toEqual(["before"]);
    expect(statSync(log, { throwIfNoEntry: false })?.size ?? 0).toBe(0);
  });

  test("is no start for a service until the copy is restored or removed", async () => {
    await open(false);
    disturb();
    expect(await fault(create("lost"))).toContain(`restore ${saved()} --force`);
    await storage.close();
    expect(() => SqliteStorage.open(path)).toThrow(`${saved()} exists: a service saves its database there`);
    await restoreDatabase(saved(), path, true);
    rmSync(saved());
    storage = SqliteStorage.open(path);
    expect(await namesIn(path)).toEqual(["before"]);
  });

  test("is saved at the end where it could not be before", async () => {
    await open(false);
    mkdirSync(saved());
    disturb();
    expect(await fault(create("lost"))).toContain("can't be saved");
    rmSync(saved(), { recursive: true });
    await storage.close();
    expect(await namesIn(saved())).toEqual(["before"]);
  });
});

/** A sound database of one customer. */
async function makeOther(file: string): Promise<void> {
  const other = SqliteStorage.open(file);
  await other.customers.create(
    "default",
    { name: "other", email: "a@b", status: "active" },
    0,
    null,
    TEST_ORIGIN,
  );
  await other.close();
}

test.each([true, false])(
  "another database that was renamed over it stays sound (saved: %p)",
  async (isSaved) => {
    await open(true);
    await makeOther(away);
    if (!isSaved) mkdirSync(`${path}.saved`);
    renameSync(away, path);
    expect(await fault(create("lost"))).toContain("was deleted or replaced");
    await storage.close();
    rmSync(`${path}.saved`, { recursive: true });
    expect(await namesIn(path)).toEqual(["other"]);
    storage = SqliteStorage.open(path);
  },
);

test("nothing is restored while a service has the deleted file open: it would save what it has once more", async () => {
  await open(false);
  const child = Bun.spawn(program("elsewhere", 'await Bun.stdout.write("open"); await Bun.stdin.text();'), {
    stdin: "pipe",
  });
  await child.stdout.getReader().read();
  rmAll(path, log, index);
  await storage.close();
  await expect(restoreDatabase(`${path}.saved`, path, true)).rejects.toThrow("Stop the service first");
  child.stdin.end();
  await child.exited;
  await restoreDatabase(`${path}.saved`, path, true);
  rmSync(`${path}.saved`);
  expect(await namesIn(path)).toEqual(["before", "elsewhere"]);
  storage = SqliteStorage.open(path);
});

const CHECKPOINT = "PRAGMA wal_checkpoint(TRUNCATE)";
/** As another program would, on a connection of its own. */
function elsewhere(...statements: string[]): void {
  const other = new Database(path);
  for (const statement of statements) other.run(statement);
  other.close();
}

/** The program of another process: creates a customer on the files that it finds, then does `then`. */
function program(name: string, then: string): string[] {
  const module = new URL("../sqlite-storage.ts", import.meta.url).href;
  const customer = JSON.stringify({ name, email: "a@b", status: "active" });
  const script = `import { SqliteStorage } from ${JSON.stringify(module)};
    const storage = SqliteStorage.open(${JSON.stringify(path)}, { hasWriterThread: true });
    await storage.ready;
    await storage.customers.create("default", ${customer}, 0, null, ${JSON.stringify(TEST_ORIGIN)});
    ${then}`;
  return [process.execPath, "-e", script];
}
const createElsewhere = (name: string) => Bun.spawnSync(program(name, "await storage.close();"));

test.each([
  ["its index was deleted", () => rmSync(index)],
  [
    "its log, all of it in the database, and its index were deleted",
    () => {
      elsewhere(CHECKPOINT);
      rmAll(log, index);
    },
  ],
])("what another process was told stays, after %s, and when this one closes", async (_, disturb) => {
  await open(true);
  disturb();
  expect(createElsewhere("elsewhere").exitCode).toBe(0);
  expect(await fault(create("lost"))).toContain("was deleted or replaced");
  expect(await namesAfterKill()).toEqual(["before", "elsewhere"]);
  await storage.close();
  expect(await namesAfterKill()).toEqual(["before", "elsewhere"]);
});

test.each([
  ["by process.exit", "process.exit(1);"],
  ["by an uncaught exception", 'setTimeout(() => { throw new Error("ended"); }, 0);'],
])(
  "what another process was told stays when a process whose index was deleted ends %s",
  async (_, ending) => {
    await open(false);
    await storage.close();
    const child = Bun.spawn(
      program("ended", `await Bun.stdout.write("open"); await Bun.stdin.text(); ${ending}`),
      {
        stdin: "pipe",
        stderr: "ignore",
      },
    );
    await child.stdout.getReader().read();
    rmSync(index);
    expect(createElsewhere("elsewhere").exitCode).toBe(0);
    child.stdin.end();
    expect(await child.exited).toBe(1);
    expect(await namesIn(path)).toEqual(["before", "ended", "elsewhere"]);
    storage = SqliteStorage.open(path);
  },
);

describe("a file that goes while a batch is written", () => {
  test.each([
    ["the database moved", () => renameSync(path, away)],
    ["the database replaced", replaced],
    ["the log deleted", () => rmSync(log)],
    ["the index deleted", () => rmSync(index)],
  ])("leaves its outcome unknown: %s", async (_, disturb) => {
    await open(false);
    const db = openDatabase(path);
    const batches = new GroupCommit(db, new FileGuard(db), 0, () => {});
    const job = () => {
      db.run("INSERT INTO tenants VALUES ('late', 'x')");
      disturb();
    };
    const settled = batches.tryOne(job)?.settled;
    expect(settled).toMatchObject([
      { ok: false, error: { name: "StoreUnavailable", isOutcomeUnknown: true } },
    ]);
    batches.close();
    db.close();
  });

  test("leaves its outcome unknown where the thread commits it", async () => {
    where = "thread";
    await open(true);
    const writes = Promise.allSettled(Array.from({ length: 3_000 }, (_, n) => create(`${n}`)));
    await new Promise((next) => setImmediate(next));
    const other = new Database(path);
    // Once the thread holds the lock it has looked at the files.
    for (let isHeld = false; !isHeld; ) {
      try {
        other.run("BEGIN IMMEDIATE");
        other.run("ROLLBACK");
      } catch {
        isHeld = true;
      }
    }
    replaced();
    other.close();
    const outcomes = (await writes).map((write) => write.status === "rejected" && write.reason);
    expect(outcomes.at(-1)).toMatchObject({ name: "StoreUnavailable", isOutcomeUnknown: true });
  });
});

describe("a database that another program has made smaller", () => {
  beforeEach(async () => {
    await open(false);
    elsewhere(
      "CREATE TABLE bulk (bytes BLOB) STRICT",
      "INSERT INTO bulk VALUES (zeroblob(400000))",
      CHECKPOINT,
    );
    await create("large");
    elsewhere("DROP TABLE bulk");
  });

  test("takes writes, also while its new pages are in the log alone", async () => {
    const before = statSync(path).size;
    elsewhere(
      "VACUUM",
      CHECKPOINT,
      "CREATE TABLE more (bytes BLOB) STRICT",
      "INSERT INTO more VALUES (zeroblob(50000))",
    );
    expect(statSync(path).size).toBeLessThan(before);
    expect(await fault(create("after"))).toBe("acknowledged");
    storage.ping();
    expect(await namesAfterKill()).toEqual(["before", "large", "after"]);
  });

  test("and that is truncated then takes none", async () => {
    elsewhere("VACUUM", CHECKPOINT);
    await create("after");
    truncateSync(path, statSync(path).size - 4096);
    expect(await fault(create("lost"))).toContain("was truncated");
  });
});

test.each([true, false])(
  "what was replaced has its own writes, and nothing is played into the other file (noticed: %p)",
  async (isNoticed) => {
    await open(true);
    const other = `${directory.path}/other.db`;
    const elsewhere = SqliteStorage.open(other);
    const customer = { name: "other", email: "a@b", status: "active" } as const;
    await elsewhere.customers.create("default", customer, 0, null, TEST_ORIGIN);
    await elsewhere.close();
    renameSync(path, away);
    renameSync(other, path);
    if (isNoticed) {
      expect(await fault(create("lost"))).toContain("restore FILE --force");
      expect(await namesAfterKill(away)).toEqual(["before"]);
    }
    await storage.close();
    expect(await namesIn(path)).toEqual(["other"]);
    expect(await namesIn(away)).toEqual(["before"]);
    storage = SqliteStorage.open(path);
  },
);

test("a database that was put back takes writes again", async () => {
  await open(false);
  replaced();
  expect(await fault(create("lost"))).toContain("is not the file that was opened");
  renameSync(away, path);
  storage.ping();
  await create("after");
  expect(await namesAfterKill()).toEqual(["before", "after"]);
});

test("a thread that is started while another file is in the place writes into neither", async () => {
  where = "thread";
  await open(true);
  replaced();
  started.at(-1)?.terminate();
  await new Promise((ended) => started.at(-1)?.addEventListener("close", ended));
  await storage.ready;
  expect(started.length).toBe(2);
  expect(await fault(create("lost"))).toContain("is not the file that was opened");
  renameSync(away, path);
  expect(await fault(create("after"))).toBe("acknowledged");
  expect(await namesAfterKill()).toEqual(["before", "after"]);
});

test("a checkpoint by another program that empties the log is no fault", async () => {
  await open(false);
  elsewhere(CHECKPOINT);
  expect(statSync(log).size).toBe(0);
  await create("after");
  expect(await namesAfterKill()).toEqual(["before", "after"]);
});

test("the log shrinks to its limit after a long reader", async () => {
  await open(false);
  const reader = openDatabase(path);
  reader.run("BEGIN");
  reader.query("SELECT count(*) FROM customers").get();
  const bulk = openDatabase(path);
  bulk.run("CREATE TABLE bulk (bytes BLOB) STRICT");
  bulk.run(`INSERT INTO bulk VALUES (zeroblob(${LOG_BYTES_MAX + 4_000_000}))`);
  bulk.close();
  expect(statSync(log).size).toBeGreaterThan(LOG_BYTES_MAX);
  reader.close();
  for (let count = 0; count < 3; count += 1) await create(`after ${count}`);
  expect(statSync(log).size).toBeLessThanOrEqual(LOG_BYTES_MAX);
  expect(readFileSync(path).length).toBeGreaterThan(LOG_BYTES_MAX);
});
