import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { customerStoreContract } from "../customer-store.contract.ts";
import { IDEMPOTENCY_KEY_MS } from "../customer-store.ts";
import { connect } from "./files/sqlite-database.ts";
import { MEMORY } from "./files/sqlite-url.ts";
import { SqliteStorage } from "./sqlite-storage.ts";

const directory = mkdtempSync(join(tmpdir(), "customer-store-"));
afterAll(() => rmSync(directory, { recursive: true }));

customerStoreContract("SQLite in memory", () => SqliteStorage.open(MEMORY));
for (const where of ["inline", "thread"] as const) {
  customerStoreContract(`SQLite on disk, committed ${where}`, () =>
    SqliteStorage.open(join(directory, `${where}.db`), { chooseWhere: () => where }),
  );
}

test("a closed store leaves one file behind, and its customers and cursor key are there when it is opened again", async () => {
  const inner = mkdtempSync(join(directory, "again-"));
  const path = join(inner, "customers.db");
  const first = SqliteStorage.open(path);
  const made = await first.customers.create("t", { name: "A", email: "a@b", status: "active" }, 0, null);
  if (made.kind !== "created") throw new Error(made.kind);
  const { cursorKey } = first.customers;
  await first.close();
  expect(readdirSync(inner)).toEqual(["customers.db"]);

  const second = SqliteStorage.open(path);
  expect(second.customers.cursorKey).toEqual(cursorKey);
  expect(second.customers.rowVersion("t", made.id)).toEqual(made.rowVersion);
  await second.close();
});

test("expired idempotency keys go at most 500 at a time, until none is left", async () => {
  const path = join(directory, "purge.db");
  const storage = SqliteStorage.open(path);
  const create = (key: string, nowMs: number) =>
    storage.customers.create("t", { name: "A", email: "a@b", status: "active" }, nowMs, {
      ...{ tokenId: "t", digest: "01" },
      key,
      nowMs,
    });
  await Promise.all(Array.from({ length: 1_200 }, (_, index) => create(`old ${index}`, 0)));
  const other = connect(path);
  const kept = () => other.query<{ n: number }, []>("SELECT count(*) AS n FROM idempotency_keys").get()?.n;
  const counts = [kept()];
  for (let index = 0; index < 4; index += 1) {
    await create(`new ${index}`, IDEMPOTENCY_KEY_MS);
    counts.push(kept());
  }
  expect(counts).toEqual([1_200, 701, 202, 3, 4]);
  other.close();
  await storage.close();
});
