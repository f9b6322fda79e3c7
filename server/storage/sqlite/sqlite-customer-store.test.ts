import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { customerStoreContract } from "../customer-store.contract.ts";
import { SqliteConnections } from "./connections.ts";
import { connect, MEMORY, openDatabase } from "./sqlite-database.ts";
import { SqliteStorage } from "./sqlite-storage.ts";

const directory = mkdtempSync(join(tmpdir(), "customer-store-"));
afterAll(() => rmSync(directory, { recursive: true }));

customerStoreContract("SQLite in memory", () => SqliteStorage.open(MEMORY));
customerStoreContract("SQLite on disk", () =>
  SqliteStorage.over(openDatabase(join(directory, "customers.db")), connect(join(directory, "customers.db"))),
);

const isBusy = { "while it is quiet": false, "while it is busy": true };
for (const [when, busy] of Object.entries(isBusy)) {
  customerStoreContract(`SQLite as the service opens it, ${when}`, () => {
    const path = join(directory, `adaptive-${busy}.db`);
    return new SqliteStorage(
      path,
      SqliteConnections.openAdaptive(
        path,
        () => {},
        () => busy,
      ),
    );
  });
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
