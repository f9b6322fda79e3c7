import { afterEach, beforeEach, expect, test } from "bun:test";
import { StoreUnavailable } from "../../storage/customers/customer-store.ts";
import { openDatabase } from "../../storage/sqlite/files/sqlite-database.ts";
import { SqliteStorage } from "../../storage/sqlite/sqlite-storage.ts";
import { WatchedDatabase } from "../../tests/support/database/watched-database.ts";
import { temporaryDirectory } from "../../tests/support/service/server-process.ts";
import { Readiness } from "./readiness.ts";

let directory: ReturnType<typeof temporaryDirectory>;
let writer: WatchedDatabase;
let storage: SqliteStorage;
beforeEach(() => {
  directory = temporaryDirectory();
  const path = `${directory.path}/customers.db`;
  openDatabase(path).close();
  writer = new WatchedDatabase(path, { readwrite: true, create: false, strict: true });
  storage = new SqliteStorage(openDatabase(path), writer);
});
afterEach(async () => {
  await storage.close();
  directory.remove();
});

const locks = (): number => writer.ran.filter((sql) => sql === "BEGIN IMMEDIATE").length;

test("a hundred checks in a row take the write lock once", async () => {
  const readiness = new Readiness(() => storage.ping());
  for (let check = 0; check < 100; check += 1) await readiness.check();
  expect(locks()).toBe(1);
});

test("checks that come while a slow store is asked share its answer, and a failure is not kept", async () => {
  const answers = [
    Promise.reject(new StoreUnavailable("slow and broken")),
    Promise.resolve(),
    Promise.resolve(),
  ];
  let asked = 0;
  const readiness = new Readiness(() => answers[asked++]);
  const together = [readiness.check(), readiness.check()];
  for (const check of together) expect(check).rejects.toThrow("slow and broken");
  await Promise.allSettled(together);
  expect(asked).toBe(1);
  await Promise.all([readiness.check(), readiness.check()]);
  await readiness.check();
  expect(asked).toBe(2);
});
