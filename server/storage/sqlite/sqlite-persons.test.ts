import { afterAll, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { NO_BODY } from "../../domain/projection.ts";
import { temporaryDirectory } from "../../tests/support/server-process.ts";
import { TEST_ORIGIN } from "../../tests/support/test-origin.ts";
import { personStoreContract } from "../person-store.contract.ts";
import { SqliteStorage } from "./sqlite-storage.ts";

const directory = temporaryDirectory();
afterAll(directory.remove);

for (const where of ["inline", "thread"] as const) {
  const path = `${directory.path}/${where}.db`;
  await personStoreContract(`SQLite, committed ${where}`, () =>
    SqliteStorage.open(path, { chooseWhere: () => where }),
  );
}

test("nothing of an erased person is left in the bytes of the file and its log", async () => {
  const path = `${directory.path}/bytes.db`;
  const storage = SqliteStorage.open(path);
  const { customers, persons } = storage;
  const origin = { ...TEST_ORIGIN, keepsValues: true };
  // Long, so that pages fill, split and become free.
  const name = (n: number) => `Unmistakable ${n} ${"x".repeat(150)}`;
  const ids: string[] = [];
  for (let n = 0; n < 200; n += 1) {
    const customer = { name: name(n), email: `unmistakable${n}@example.com`, status: "active" } as const;
    const made = await customers.create("t", customer, 0, null, origin);
    if (made.kind !== "created") throw new Error(made.kind);
    const target = { tenant: "t", id: made.id, expected: { anyExcept: [] } };
    await customers.update(target, { name: name(n + 1_000) }, NO_BODY, null, origin);
    ids.push(made.id);
  }
  const bytes = () => ["", "-wal"].map((suffix) => readFileSync(`${path}${suffix}`, "latin1")).join("");
  expect(bytes()).toContain("Unmistakable");
  for (const id of ids) await persons.erase("t", id);
  expect(persons.emptyLog()).toBe(true);
  expect(bytes()).not.toMatch(/unmistakable/i);
  await storage.close();
});
