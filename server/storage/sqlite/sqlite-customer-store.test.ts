import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { customerStoreContract } from "../customer-store.contract.ts";
import { SqliteConnections } from "./connections.ts";
import { SqliteCustomerStore } from "./sqlite-customer-store.ts";
import { MEMORY } from "./sqlite-database.ts";

const directory = mkdtempSync(join(tmpdir(), "customer-store-"));
afterAll(() => rmSync(directory, { recursive: true }));

customerStoreContract("SQLite in memory", () => new SqliteCustomerStore(SqliteConnections.open(MEMORY)));
customerStoreContract(
  "SQLite on disk",
  () => new SqliteCustomerStore(SqliteConnections.open(join(directory, "customers.db"))),
);

const isBusy = { "while it is quiet": false, "while it is busy": true };
for (const [when, busy] of Object.entries(isBusy)) {
  customerStoreContract(`SQLite as the service opens it, ${when}`, () => {
    const path = join(directory, `adaptive-${busy}.db`);
    return new SqliteCustomerStore(
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
  const first = new SqliteCustomerStore(SqliteConnections.open(path));
  const made = await first.create("t", { name: "A", email: "a@b", status: "active" }, 0, null);
  if (made.kind !== "created") throw new Error(made.kind);
  const { cursorKey } = first;
  await first.close();
  expect(readdirSync(inner)).toEqual(["customers.db"]);

  const second = new SqliteCustomerStore(SqliteConnections.open(path));
  expect(second.cursorKey).toEqual(cursorKey);
  expect(second.rowVersion("t", made.id)).toEqual(made.rowVersion);
  await second.close();
});
