import type { Database } from "bun:sqlite";
import { afterAll, afterEach, beforeEach, describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { temporaryDirectory } from "../../tests/support/service/server-process.ts";
import { TEST_ORIGIN } from "../../tests/support/service/test-origin.ts";
import { tokenStoreContract } from "../tokens/token-store.contract.ts";
import { connect, openDatabase } from "./files/sqlite-database.ts";
import { SqliteStorage } from "./sqlite-storage.ts";
import { sqliteTokenStore } from "./sqlite-token-store.ts";

const HOUR_MS = 3_600_000;
const NOW_MS = Date.UTC(2027, 0, 15, 12, 34, 56);
const CALLER = { client: "ci", role: "viewer", tenant: "acme" };

const contractDirectory = temporaryDirectory();
afterAll(contractDirectory.remove);

let directory: ReturnType<typeof temporaryDirectory>;
let storage: SqliteStorage;
let writer: Database;
let tokens: SqliteStorage["tokens"];
beforeEach(() => {
  directory = temporaryDirectory();
  writer = openDatabase(`${directory.path}/customers.db`);
  storage = new SqliteStorage(connect(`${directory.path}/customers.db`), writer);
  tokens = storage.tokens;
});
afterEach(async () => {
  await storage.close();
  directory.remove();
});

await tokenStoreContract("SQLite", () =>
  SqliteStorage.open(`${contractDirectory.path}/customers.db`, { chooseWhere: () => "thread" }),
);

describe("a token", () => {
  test("is kept as a digest alone: its text is nowhere in the file", async () => {
    const { token } = await tokens.create(CALLER, NOW_MS, null);
    for (const suffix of ["", "-wal"]) {
      expect(readFileSync(`${directory.path}/customers.db${suffix}`, "latin1")).not.toContain(
        token.slice(12),
      );
    }
  });

  test("of one connection is seen by another process's at once, and so is its revocation", async () => {
    const elsewhere = SqliteStorage.open(`${directory.path}/customers.db`);
    const theirs = elsewhere.tokens;
    const { token } = await theirs.create(CALLER, NOW_MS, null);
    expect(tokens.find(token, NOW_MS)).toMatchObject(CALLER);
    // Reads share a transaction for a turn of the event
    // loop; what another process does comes in another turn.
    await new Promise((next) => setImmediate(next));
    await theirs.revoke(token, NOW_MS);
    expect(tokens.find(token, NOW_MS)).toBeNull();
    await elsewhere.close();
  });

  test("that this process revokes is refused at once", async () => {
    const { token } = await tokens.create(CALLER, NOW_MS, null);
    expect(tokens.find(token, NOW_MS)).toMatchObject(CALLER);
    await tokens.revoke(token, NOW_MS);
    expect(tokens.find(token, NOW_MS)).toBeNull();
  });

  test.each(["before", "after"])(
    "that another process revokes just %s a write of this one is refused",
    async (when) => {
      const elsewhere = SqliteStorage.open(`${directory.path}/customers.db`);
      const write = () => {
        const customer = { name: "Ada", email: "ada@example.com", status: "active" } as const;
        return storage.customers.create("acme", customer, NOW_MS, null, {
          ...TEST_ORIGIN,
          operation: "create",
        });
      };
      for (let round = 0; round < 10; round += 1) {
        const { token } = await elsewhere.tokens.create(CALLER, NOW_MS, null);
        expect(tokens.find(token, NOW_MS)).toMatchObject(CALLER);
        await write();
        expect(tokens.find(token, NOW_MS)).toMatchObject(CALLER);
        await new Promise((next) => setImmediate(next));
        if (when === "after") await write();
        await elsewhere.tokens.revoke(token, NOW_MS);
        if (when === "before") await write();
        expect(tokens.find(token, NOW_MS)).toBeNull();
        await new Promise((next) => setImmediate(next));
      }
      await elsewhere.close();
    },
  );
});

describe("the use of a token", () => {
  const lastUsed = () => tokens.list()[0]?.lastUsedAtMs;
  /** Every write goes through one queue, so one more shows that those before it are done. */
  const noted = () => storage.write.run("noteTokenUse", { digest: "00".repeat(32), hourMs: 0, from: null });

  test("is noted to the hour, and once an hour: a token costs one write an hour, not one a request", async () => {
    const { token } = await tokens.create(CALLER, NOW_MS, null);
    const changes = () =>
      writer.query<{ n: number }, []>("SELECT total_changes() AS n").get()?.n ?? Number.NaN;
    expect(lastUsed()).toBeNull();
    const before = changes();
    for (let use = 0; use < 50; use += 1) tokens.find(token, NOW_MS + use * 1000);
    await noted();
    expect(lastUsed()).toBe(NOW_MS);
    expect(changes() - before).toBe(1);
    for (let use = 0; use < 50; use += 1) tokens.find(token, NOW_MS + HOUR_MS + use * 1000);
    await noted();
    expect(lastUsed()).toBe(Date.UTC(2027, 0, 15, 13));
    expect(changes() - before).toBe(2);
  });

  test("is not noted again by a process that has just started", async () => {
    const { token } = await tokens.create(CALLER, NOW_MS, null);
    tokens.find(token, NOW_MS);
    await noted();
    const restarted = sqliteTokenStore(storage.read, storage.write);
    const before = writer.query<{ n: number }, []>("SELECT total_changes() AS n").get()?.n;
    restarted.find(token, NOW_MS + 1000);
    await noted();
    expect(writer.query<{ n: number }, []>("SELECT total_changes() AS n").get()?.n).toBe(before ?? -1);
  });

  test("that can't be noted does not refuse the caller, and is tried again a minute later", async () => {
    const { token } = await tokens.create(CALLER, NOW_MS, null);
    writer.run("PRAGMA query_only = ON");
    expect(tokens.find(token, NOW_MS)).toMatchObject(CALLER);
    await expect(noted()).rejects.toThrow("SQLITE_READONLY");
    expect(lastUsed()).toBeNull();
    writer.run("PRAGMA query_only = OFF");
    expect(tokens.find(token, NOW_MS + 59_999)).toMatchObject(CALLER);
    await noted();
    expect(lastUsed()).toBeNull();
    expect(tokens.find(token, NOW_MS + 60_000)).toMatchObject(CALLER);
    await noted();
    expect(lastUsed()).toBe(NOW_MS);
  });
});
