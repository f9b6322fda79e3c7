import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { FIELD_NAMES } from "../../domain/customer/field-registry.ts";
import { projectionOf } from "../../domain/projection.ts";
import { TEST_ORIGIN } from "../../tests/support/service/test-origin.ts";
import { customerStoreContract } from "../customers/customer-store.contract.ts";
import { openExistingDatabase } from "./files/sqlite-database.ts";
import { MEMORY } from "./files/sqlite-url.ts";
import { SqliteStorage } from "./sqlite-storage.ts";

const directory = mkdtempSync(join(tmpdir(), "customer-store-"));
afterAll(() => rmSync(directory, { recursive: true }));

await customerStoreContract("SQLite in memory", () => SqliteStorage.open(MEMORY));
for (const where of ["inline", "thread"] as const) {
  await customerStoreContract(`SQLite on disk, committed ${where}`, () =>
    SqliteStorage.open(
      join(directory, `${where}.db`),
      where === "thread" ? { chooseWhere: () => where } : {},
    ),
  );
}

test("a closed store leaves one file behind, and its customers and cursor key are there when it is opened again", async () => {
  const inner = mkdtempSync(join(directory, "again-"));
  const path = join(inner, "customers.db");
  const first = SqliteStorage.open(path);
  const made = await first.customers.create(
    "t",
    { name: "A", email: "a@b", status: "active" },
    0,
    null,
    TEST_ORIGIN,
  );
  if (made.kind !== "created") throw new Error(made.kind);
  const { cursorKey } = first.customers;
  await first.close();
  expect(readdirSync(inner)).toEqual(["customers.db"]);

  const second = SqliteStorage.open(path);
  expect(second.customers.cursorKey).toEqual(cursorKey);
  expect(second.customers.rowVersion("t", made.id)).toEqual(made.rowVersion);
  await second.close();
});

test("no row holds anything of a deleted customer, outcomes under idempotency keys included", async () => {
  const path = join(directory, "forgotten.db");
  const storage = SqliteStorage.open(path);
  const { customers } = storage;
  const secret = { name: "Forget Me", email: "forget@me.example" };
  const made = await customers.create("t", { ...secret, status: "active" }, 0, null, TEST_ORIGIN);
  if (made.kind !== "created") throw new Error(made.kind);
  const target = { tenant: "t", id: made.id, expected: { anyExcept: [] } };
  for (const key of ["1", "2"]) {
    await customers.update(
      target,
      secret,
      projectionOf(FIELD_NAMES),
      {
        ...{ tokenId: "t", digest: "01", nowMs: 0 },
        key,
      },
      TEST_ORIGIN,
    );
  }
  await customers.remove(target, null, TEST_ORIGIN);
  await storage.close();
  const db = openExistingDatabase(path);
  for (const { name } of db
    .query<{ name: string }, []>("SELECT name FROM sqlite_schema WHERE type = 'table'")
    .all()) {
    const rows = db.query<Record<string, unknown>, []>(`SELECT * FROM ${name}`).all();
    expect(JSON.stringify(rows)).not.toMatch(/forget/i);
  }
  db.close();
});
