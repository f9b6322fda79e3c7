import { expect, test } from "bun:test";
import { temporaryDirectory } from "../../tests/support/service/server-process.ts";
import { TEST_ORIGIN } from "../../tests/support/service/test-origin.ts";
import { connect } from "../sqlite/files/sqlite-database.ts";
import { SqliteStorage } from "../sqlite/sqlite-storage.ts";
import { KeyPurge } from "./key-purge.ts";

test("a service deletes the expired keys that it finds, many as they are, and no others", async () => {
  const directory = temporaryDirectory();
  const path = `${directory.path}/customers.db`;
  const storage = SqliteStorage.open(path);
  const ada = { name: "Ada", email: "ada@example.com", status: "active" } as const;
  const create = (key: string, nowMs: number) =>
    storage.customers.create("t", ada, nowMs, { tokenId: "t", key, digest: "01", nowMs }, TEST_ORIGIN);
  await Promise.all(Array.from({ length: 1_200 }, (_, index) => create(`old ${index}`, 0)));
  await create("new", Date.now());
  const database = connect(path);
  const kept = () => database.query<{ key: string }, []>("SELECT key FROM idempotency_keys").all();

  const purge = new KeyPurge(storage.customers, (error) => {
    throw error;
  });
  while (kept().length > 1) await new Promise(setImmediate);
  expect(kept()).toEqual([{ key: "new" }]);
  purge.stop();
  database.close();
  await storage.close();
  directory.remove();
});
