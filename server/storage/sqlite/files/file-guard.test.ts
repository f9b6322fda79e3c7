import { Database } from "bun:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import {
  copyFileSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { namesIn } from "../../../tests/support/database-files.ts";
import { temporaryDirectory } from "../../../tests/support/server-process.ts";
import { StoreUnavailable } from "../../customer-store.ts";
import type { Commit } from "../../storage.ts";
import { SqliteStorage } from "../sqlite-storage.ts";
import { LOG_BYTES_MAX, openDatabase } from "./sqlite-database.ts";

const RealWorker = globalThis.Worker;
const started: Worker[] = [];

let directory: ReturnType<typeof temporaryDirectory>;
let path: string;
let away: string;
let log: string;
let storage: SqliteStorage;
let where: Commit["where"];
beforeEach(async () => {
  directory = temporaryDirectory();
  path = `${directory.path}/customers.db`;
  [away, log] = [`${directory.path}/away.db`, `${path}-wal`];
  globalThis.Worker = class extends RealWorker {
    constructor(...args: ConstructorParameters<typeof RealWorker>) {
      super(...args);
      started.push(this);
    }
  };
  where = "inline";
  storage = SqliteStorage.open(path, { chooseWhere: () => where });
  await storage.ready;
  await create("before");
});
afterEach(async () => {
  globalThis.Worker = RealWorker;
  started.splice(0);
  await storage.close();
  directory.remove();
});

const create = (name: string) =>
  storage.customers.create("default", { name, email: "a@b", status: "active" }, 0, null);
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

const replaced = () => {
  renameSync(path, away);
  copyFileSync(away, path);
};
const CASES: [string, () => void, string][] = [
  ["moved", () => renameSync(path, away), "is not the file that was opened"],
  ["replaced", replaced, "is not the file that was opened"],
  ["cut off", () => truncateSync(path, 0), "customers.db was cut off"],
  ["without its log", () => rmSync(log), "customers.db-wal was deleted or replaced"],
  [
    "with another log",
    () => {
      renameSync(log, `${log}.old`);
      writeFileSync(log, "");
    },
    "customers.db-wal was deleted or replaced",
  ],
  ["with its log cut off", () => truncateSync(log, 0), "customers.db-wal was cut off"],
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

test("a log that was deleted loses nothing that was acknowledged, once it was noticed", async () => {
  rmSync(log);
  expect(() => storage.ping()).toThrow("restart the service");
  expect(await namesAfterKill()).toEqual(["before"]);
});

test.each([true, false])(
  "what was replaced has its own writes, and nothing is played into the other file (noticed: %p)",
  async (isNoticed) => {
    const other = `${directory.path}/other.db`;
    const elsewhere = SqliteStorage.open(other);
    const customer = { name: "other", email: "a@b", status: "active" } as const;
    await elsewhere.customers.create("default", customer, 0, null);
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
  replaced();
  expect(await fault(create("lost"))).toContain("is not the file that was opened");
  renameSync(away, path);
  storage.ping();
  await create("after");
  expect(await namesAfterKill()).toEqual(["before", "after"]);
});

test("a thread that is started while another file is in the place writes into neither", async () => {
  where = "thread";
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
  const other = new Database(path);
  other.run("PRAGMA wal_checkpoint(TRUNCATE)");
  other.close();
  expect(statSync(log).size).toBe(0);
  await create("after");
  expect(await namesAfterKill()).toEqual(["before", "after"]);
});

test("the log shrinks to its limit after a long reader", async () => {
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
