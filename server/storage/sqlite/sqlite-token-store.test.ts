import type { Database } from "bun:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { temporaryDirectory } from "../../tests/support/server-process.ts";
import { drawToken } from "../bearer-token.ts";
import { SqliteConnections } from "./connections.ts";
import { connect, openDatabase } from "./sqlite-database.ts";
import { SqliteTokenStore } from "./sqlite-token-store.ts";

const HOUR_MS = 3_600_000;
const NOW_MS = Date.UTC(2027, 0, 15, 12, 34, 56);
const CALLER = { client: "ci", role: "viewer", tenant: "acme" };

let directory: ReturnType<typeof temporaryDirectory>;
let connections: SqliteConnections;
let writer: Database;
let tokens: SqliteTokenStore;
beforeEach(() => {
  directory = temporaryDirectory();
  writer = openDatabase(`${directory.path}/customers.db`);
  connections = SqliteConnections.over(connect(`${directory.path}/customers.db`), writer);
  tokens = new SqliteTokenStore(connections);
});
afterEach(async () => {
  await connections.close();
  directory.remove();
});

describe("a token", () => {
  test("is cst_ and 40 letters and digits, all of them used, none twice the same", () => {
    const drawn = Array.from({ length: 500 }, drawToken);
    for (const token of drawn) expect(token).toMatch(/^cst_[A-Za-z0-9]{40}$/);
    expect(new Set(drawn).size).toBe(500);
    expect(new Set(drawn.join("").replaceAll("cst_", "")).size).toBe(62);
  });

  test("finds its caller, and nothing but itself does", async () => {
    const { token } = await tokens.create(CALLER, NOW_MS, null);
    expect(tokens.find(token, NOW_MS)).toMatchObject(CALLER);
    const others = [
      drawToken(),
      token.slice(0, -1),
      `${token}A`,
      token.toLowerCase() === token ? token.toUpperCase() : token.toLowerCase(),
      ` ${token}`,
      `${token}\n`,
      token.replace("cst_", "cst-"),
      token.slice(0, 12),
      "",
      "cst_",
    ];
    for (const other of others) expect(tokens.find(other, NOW_MS)).toBeNull();
  });

  test("is kept as a digest alone: its text is nowhere in the file", async () => {
    const { token } = await tokens.create(CALLER, NOW_MS, null);
    for (const suffix of ["", "-wal"]) {
      expect(readFileSync(`${directory.path}/customers.db${suffix}`, "latin1")).not.toContain(
        token.slice(12),
      );
    }
  });

  test("holds until the instant at which it expires", async () => {
    const { token } = await tokens.create(CALLER, NOW_MS, NOW_MS + 1000);
    expect(tokens.find(token, NOW_MS + 999)).toMatchObject(CALLER);
    expect(tokens.find(token, NOW_MS + 1000)).toBeNull();
  });

  test("of one connection is seen by another process's at once, and so is its revocation", async () => {
    const elsewhere = SqliteConnections.open(`${directory.path}/customers.db`);
    const theirs = new SqliteTokenStore(elsewhere);
    const { token } = await theirs.create(CALLER, NOW_MS, null);
    expect(tokens.find(token, NOW_MS)).toMatchObject(CALLER);
    // Reads share a transaction for a turn of the event loop; what another process does comes in another turn.
    await new Promise((next) => setImmediate(next));
    await theirs.revoke(token, NOW_MS);
    expect(tokens.find(token, NOW_MS)).toBeNull();
    await elsewhere.close();
  });
});

describe("revoking", () => {
  const CHARACTERS = "x".repeat(32);
  const one = `cst_aaaa1111${CHARACTERS}`;
  const other = `cst_aaaa2222${CHARACTERS}`;
  beforeEach(async () => {
    for (const token of [other, one]) await tokens.create(CALLER, NOW_MS, null, token);
  });
  const valid = () => [one, other].filter((token) => tokens.find(token, NOW_MS) !== null);

  test.each([
    ["cst_aaaa1111", "revoked", [other]],
    ["cst_aaaa2", "revoked", [one]],
    [one, "revoked", [other]],
    ["cst_aaaa", "ambiguous", [one, other]],
    ["cst_a", "ambiguous", [one, other]],
    ["cst_b", "missing", [one, other]],
    [`cst_aaaa1111${"y".repeat(32)}`, "missing", [one, other]],
    ["cst_aaaa1111xx", "missing", [one, other]],
  ])("%j is %s", async (text, kind, left) => {
    const outcome = await tokens.revoke(text, NOW_MS);
    expect(outcome.kind as string).toBe(kind);
    if (outcome.kind === "ambiguous") {
      expect(outcome.tokens.map((token) => token.prefix)).toEqual(["cst_aaaa1111", "cst_aaaa2222"]);
    }
    expect(valid()).toEqual(left);
  });

  test.each(["", "cst_", "cst", "c", "%", "cst_%", "_", "cst_\u0000"])(
    "%j names no token, though only one is left that it could mean",
    async (text) => {
      await tokens.revoke(one, NOW_MS);
      expect(await tokens.revoke(text, NOW_MS)).toEqual({ kind: "missing" });
      expect(valid()).toEqual([other]);
    },
  );

  test("says when, and a revoked token is listed and can't be revoked again", async () => {
    await tokens.revoke(one, NOW_MS);
    expect(tokens.list().map((token) => [token.prefix, token.revokedAtMs])).toEqual([
      ["cst_aaaa1111", NOW_MS],
      ["cst_aaaa2222", null],
    ]);
    expect((await tokens.revoke(one, NOW_MS)).kind).toBe("missing");
  });
});

describe("the use of a token", () => {
  const lastUsed = () => tokens.list()[0]?.lastUsedAtMs;
  /** Every write goes through one queue, so one more shows that those before it are done. */
  const noted = () => connections.write.run("noteTokenUse", { digest: "00".repeat(32), hourMs: 0 });

  test("is noted to the hour, and once an hour: a token costs one write an hour, not one a request", async () => {
    const { token } = await tokens.create(CALLER, NOW_MS, null);
    const changes = () =>
      writer.query<{ n: number }, []>("SELECT total_changes() AS n").get()?.n ?? Number.NaN;
    expect(lastUsed()).toBeNull();
    const before = changes();
    for (let use = 0; use < 50; use += 1) tokens.find(token, NOW_MS + use * 1000);
    await noted();
    expect(lastUsed()).toBe(Date.UTC(2027, 0, 15, 12));
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
    const restarted = new SqliteTokenStore(connections);
    const before = writer.query<{ n: number }, []>("SELECT total_changes() AS n").get()?.n;
    restarted.find(token, NOW_MS + 1000);
    await noted();
    expect(writer.query<{ n: number }, []>("SELECT total_changes() AS n").get()?.n).toBe(before ?? -1);
  });

  test("of a refused one is not noted", async () => {
    const { token } = await tokens.create(CALLER, NOW_MS, null);
    await tokens.revoke(token, NOW_MS);
    tokens.find(token, NOW_MS);
    await noted();
    expect(lastUsed()).toBeNull();
  });

  test("that can't be noted does not refuse the caller, and is noted when it can be", async () => {
    const { token } = await tokens.create(CALLER, NOW_MS, null);
    writer.run("PRAGMA query_only = ON");
    expect(tokens.find(token, NOW_MS)).toMatchObject(CALLER);
    await expect(noted()).rejects.toThrow("SQLITE_READONLY");
    expect(lastUsed()).toBeNull();
    writer.run("PRAGMA query_only = OFF");
    expect(tokens.find(token, NOW_MS)).toMatchObject(CALLER);
    await noted();
    expect(lastUsed()).toBe(Date.UTC(2027, 0, 15, 12));
  });
});
