import { Database } from "bun:sqlite";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { copyFileSync } from "node:fs";
import { CHAIN_START, type ChainedEntry } from "../../domain/audit/audit-chain.ts";
import type { AuditEntry } from "../../domain/audit/audit-entry.ts";
import { NO_BODY } from "../../domain/projection.ts";
import { writeDatabase } from "../../tests/support/database/database-files.ts";
import { temporaryDirectory } from "../../tests/support/service/server-process.ts";
import { TEST_ORIGIN } from "../../tests/support/service/test-origin.ts";
import { auditStoreContract } from "../audit/audit-store.contract.ts";
import { reportOnChain } from "../audit/chain-report.ts";
import { schemaSteps } from "./files/schema.ts";
import { connect, openDatabase } from "./files/sqlite-database.ts";
import { MEMORY } from "./files/sqlite-url.ts";
import { SqliteStorage } from "./sqlite-storage.ts";

const ADA = { name: "Ada", email: "ada@example.com", status: "active" } as const;

const directory = temporaryDirectory();
afterAll(directory.remove);

/** @returns the first value of the first row */
function runOn(path: string, sql: string): unknown {
  const db = connect(path);
  try {
    return db.query(sql).values()[0]?.[0];
  } finally {
    db.close();
  }
}

function runAll(path: string, ...statements: readonly string[]): void {
  const db = connect(path);
  try {
    for (const statement of statements) db.run(statement);
  } finally {
    db.close();
  }
}

for (const where of ["inline", "thread"] as const) {
  const path = `${directory.path}/${where}.db`;
  await auditStoreContract(
    `SQLite, committed ${where}`,
    () => SqliteStorage.open(path, where === "thread" ? { chooseWhere: () => where } : {}),
    (sql) => runOn(path, sql),
  );
}

test.each([
  [
    "a row that was changed",
    "UPDATE audit SET client = 'x' WHERE number = 2",
    "row 2 does not have the hash",
  ],
  ["a row that was removed", "DELETE FROM audit WHERE number = 2", "row 2 is missing"],
  ["rows that were removed", "DELETE FROM audit WHERE number IN (1, 2)", "rows 1 to 2 are missing"],
  ["a hash that was changed", "UPDATE audit SET hash = zeroblob(32) WHERE number = 3", "row 3 does not have"],
  [
    "a start behind the last row",
    "INSERT INTO audit_anchors VALUES ('default', 999, zeroblob(32), 1)",
    "row 1 is there, though the chain begins with row 1000",
  ],
  [
    "a start with rows before it that were changed",
    `INSERT INTO audit_anchors SELECT tenant, number, hash, time FROM audit WHERE number = 4;
      UPDATE audit SET client = 'x' WHERE number = 2`,
    "row 1 is there, though the chain begins with row 5",
  ],
  [
    "a start with the hash of another row",
    `INSERT INTO audit_anchors SELECT tenant, 2, hash, time FROM audit WHERE number = 3;
      DELETE FROM audit WHERE number <= 2`,
    "row 3 does not have the hash",
  ],
  [
    "a start before the first row",
    "PRAGMA ignore_check_constraints = ON; INSERT INTO audit_anchors VALUES ('default', 0, zeroblob(32), 1)",
    "the chain begins after row 0, which is none",
  ],
  [
    "a row before the first one",
    `PRAGMA ignore_check_constraints = ON; INSERT INTO audit SELECT tenant, -9223372036854775808, time, client, token_prefix,
      request_id, operation, customer_id, version_before, version_after, changed, without_if_match, with_key, values_digest,
      hash, previous FROM audit WHERE number = 2`,
    "row -9223372036854776000 is there, though the chain begins with row 1",
  ],
])("without its triggers, %s is found", async (title, sql, fault) => {
  const path = `${directory.path}/${title}.db`;
  await writeDatabase(path, "a", "b", "c", "d");
  const triggers = ["audit_never_changes", "audit_keeps_its_rows", "audit_appends", "audit_anchors_begin"];
  runAll(path, ...triggers.map((name) => `DROP TRIGGER ${name}`), sql);
  const storage = SqliteStorage.open(path);
  const report = await reportOnChain(storage.audit, "default", null);
  await storage.close();
  expect(report.fault).toStartWith(fault);
});

test.each([
  [
    "values that were changed",
    `UPDATE audit_values SET content = '{}' WHERE number = 2`,
    "row 2 does not have the digest of the values",
  ],
  [
    "values that were deleted",
    "DELETE FROM audit_values WHERE number = 3",
    "the values of row 3 are missing",
  ],
  [
    "values beside a row that has none",
    "INSERT INTO audit_values SELECT tenant, 4, salt, content FROM audit_values WHERE number = 3",
    "row 4 does not have the digest of the values",
  ],
])("without its triggers, %s are found", async (title, sql, fault) => {
  const path = `${directory.path}/${title}.db`;
  const written = SqliteStorage.open(path);
  for (const keepsValues of [true, true, true, false])
    await written.customers.create("t", ADA, 0, null, { ...TEST_ORIGIN, operation: "create", keepsValues });
  await written.close();
  for (const trigger of ["audit_values_never_change", "audit_values_keep"])
    runOn(path, `DROP TRIGGER ${trigger}`);
  runOn(path, sql);
  const storage = SqliteStorage.open(path);
  const report = await reportOnChain(storage.audit, "t", null);
  await storage.close();
  expect(report.fault).toStartWith(fault);
});

test("values whose row another program has deleted are found", async () => {
  const path = `${directory.path}/stray.db`;
  const written = SqliteStorage.open(path);
  for (let n = 0; n < 2; n += 1)
    await written.customers.create("t", ADA, 0, null, { ...TEST_ORIGIN, keepsValues: true });
  await written.close();
  const foreign = new Database(path);
  foreign.run("PRAGMA foreign_keys = OFF");
  foreign.run("INSERT INTO audit_anchors SELECT tenant, number, hash, time FROM audit WHERE number = 1");
  foreign.run("DELETE FROM audit WHERE number = 1");
  foreign.run("INSERT INTO audit_values SELECT 'no chain', number, salt, content FROM audit_values");
  foreign.close();
  const storage = SqliteStorage.open(path);
  const reports = [];
  for (const tenant of storage.audit.tenants())
    reports.push(await reportOnChain(storage.audit, tenant, null));
  await storage.close();
  expect(reports).toMatchObject([
    { tenant: "no chain", rows: 0, fault: "values are kept without their row: 2" },
    { tenant: "t", rows: 1, fault: "values are kept without their row: 1" },
  ]);
});

test.each(["inline", "thread"] as const)(
  "a write that fails behind its row leaves a whole chain to the others of its commit, %s",
  async (where) => {
    const path = `${directory.path}/failing-${where}.db`;
    await SqliteStorage.open(path).close();
    runOn(
      path,
      "CREATE TRIGGER fails BEFORE INSERT ON idempotency_keys WHEN NEW.key = 'fails' BEGIN SELECT RAISE(ABORT, 'on purpose'); END",
    );
    const commits: number[] = [];
    const storage = SqliteStorage.open(path, {
      chooseWhere: () => where,
      onCommit: ({ writes }) => commits.push(writes),
    });
    const origin = { ...TEST_ORIGIN, operation: "create" } as const;
    const create = (tenant: string, key: string) =>
      storage.customers.create(tenant, ADA, 0, { tokenId: "t", key, digest: "01", nowMs: 0 }, origin);
    for (let round = 0; round < 3; round += 1) {
      const writes = Array.from({ length: 40 }, (_, at) =>
        create(at % 2 === 0 ? "a" : "b", at % 5 === 3 ? "fails" : `${round} ${at}`),
      );
      const settled = await Promise.allSettled(writes);
      expect(settled.filter(({ status }) => status === "fulfilled")).toHaveLength(32);
    }
    const reports = [];
    for (const tenant of storage.audit.tenants())
      reports.push(await reportOnChain(storage.audit, tenant, null));
    await storage.close();
    expect(reports).toMatchObject([
      { tenant: "a", rows: 48, fault: null },
      { tenant: "b", rows: 48, fault: null },
    ]);
    // They shared commits.
    expect(Math.max(...commits)).toBeGreaterThan(20);
  },
);

test("rows of two processes that write by turns are one chain", async () => {
  const path = `${directory.path}/two.db`;
  const [one, other] = [SqliteStorage.open(path), SqliteStorage.open(path)];
  const origin = { ...TEST_ORIGIN, operation: "create" } as const;
  for (let round = 0; round < 3; round += 1) {
    for (const { customers } of [one, other])
      await Promise.all(Array.from({ length: 20 }, () => customers.create("t", ADA, 0, null, origin)));
  }
  const report = await reportOnChain(one.audit, "t", null);
  await one.close();
  await other.close();
  expect(report).toMatchObject({ rows: 120, fault: null });
});

describe("a column that another program changes without triggers and foreign keys", () => {
  const path = `${directory.path}/columns.db`;
  beforeAll(async () => {
    const storage = SqliteStorage.open(path);
    for (let n = 0; n < 4; n += 1)
      await storage.customers.create("t", ADA, 0, null, { ...TEST_ORIGIN, keepsValues: true });
    const [first] = storage.audit.rows({ tenant: "t", after: 0, limit: 1 }) as readonly ChainedEntry[];
    if (first === undefined) throw new Error("no rows");
    await storage.audit.moveStart(CHAIN_START, first);
    await storage.close();
  });

  /** No hash covers the time of a row that is gone: audit.md says so. And a link to such a row leads nowhere, whichever it is. */
  const NOT_FOUND = ["audit_anchors.time", "audit.previous"];
  const empty = openDatabase(MEMORY);
  const columns = ["audit", "audit_values", "audit_anchors"].flatMap((table) =>
    empty
      .query<{ name: string; type: string }, []>(`PRAGMA table_info(${table})`)
      .all()
      .map(({ name, type }) => [`${table}.${name}`, table, name, type] as const),
  );
  empty.close();

  test.each(columns)("is found: %s", async (title, table, column, type) => {
    const changed = `${directory.path}/${title}.db`;
    copyFileSync(path, changed);
    const database = new Database(changed);
    const triggers = database.query<{ name: string }, []>(
      "SELECT name FROM sqlite_master WHERE type = 'trigger'",
    );
    for (const { name } of triggers.all()) database.run(`DROP TRIGGER ${name}`);
    database.run("PRAGMA foreign_keys = OFF; PRAGMA ignore_check_constraints = ON");
    const values: Readonly<Record<string, string>> = {
      TEXT: "'x'",
      INTEGER: `1 - ${column}`,
      BLOB: `zeroblob(length(${column}))`,
    };
    const where = table === "audit_anchors" ? "number = 1" : "number = 3";
    expect(database.run(`UPDATE ${table} SET ${column} = ${values[type]} WHERE ${where}`).changes).toBe(1);
    database.close();
    const storage = SqliteStorage.open(changed);
    const reports = [];
    for (const tenant of storage.audit.tenants())
      reports.push(await reportOnChain(storage.audit, tenant, null));
    await storage.close();
    expect(reports.some(({ fault }) => fault !== null)).toBe(!NOT_FOUND.includes(title));
  });
});

/** A database with a customer who was written four times, and one who was removed; another customer wrote in between. */
async function writeHistories(path: string): Promise<{ readonly kept: string; readonly removed: string }> {
  const storage = SqliteStorage.open(path);
  const { customers } = storage;
  const made = [];
  for (const operation of ["create", "create", "create"] as const) {
    const created = await customers.create("t", ADA, 0, null, {
      ...TEST_ORIGIN,
      operation,
      keepsValues: true,
    });
    if (created.kind !== "created") throw new Error(created.kind);
    made.push(created.id);
  }
  const [kept = "", removed = "", other = ""] = made;
  const target = (id: string) => ({ tenant: "t", id, expected: { anyExcept: [] } });
  for (const [id, name] of [
    [kept, "B"],
    [other, "B"],
    [removed, "B"],
    [kept, "C"],
    [kept, "D"],
  ] as const)
    await customers.update(target(id), { name }, NO_BODY, null, { ...TEST_ORIGIN, keepsValues: true });
  await customers.remove(target(removed), null, { ...TEST_ORIGIN, operation: "delete" });
  await storage.close();
  return { kept, removed };
}

function historyOf({ audit }: Pick<SqliteStorage, "audit">, customerId: string): string[] {
  const pages: (readonly AuditEntry[])[] = [];
  for (let before: string | null = null, isMore = true; isMore; ) {
    const { items, last } = audit.history({ tenant: "t", customerId, before, limit: 2, withValues: true });
    pages.push(items);
    [before, isMore] = [last, last !== null];
  }
  return pages
    .flat()
    .map(
      ({ operation, values }) =>
        `${operation} ${values === null ? "-" : JSON.parse(values.content).name?.after}`,
    );
}

const HISTORIES = {
  kept: ["replace D", "replace C", "replace B", "create Ada"],
  removed: ["delete -", "replace B", "create Ada"],
};

test("a database of the schema before, whose rows have no links, has its histories and goes on with them", async () => {
  const path = `${directory.path}/unlinked.db`;
  const { kept, removed } = await writeHistories(`${directory.path}/linked.db`);
  const former = new Database(path);
  for (const step of schemaSteps(null).slice(0, -1)) former.run(step);
  former.run("PRAGMA user_version = 5; PRAGMA application_id = 1129665364");
  former.run(`ATTACH '${directory.path}/linked.db' AS linked`);
  for (const table of ["tenants", "customers", "audit", "audit_values"]) {
    const columns = former
      .query<{ name: string }, []>(`PRAGMA main.table_info(${table})`)
      .all()
      .map(({ name }) => name);
    former.run(`INSERT INTO main.${table} SELECT ${columns.join()} FROM linked.${table} ORDER BY 1, 2`);
  }
  former.close();
  const storage = SqliteStorage.open(path);
  expect(historyOf(storage, kept)).toEqual(HISTORIES.kept);
  expect(historyOf(storage, removed)).toEqual(HISTORIES.removed);
  const target = { tenant: "t", id: kept, expected: { anyExcept: [] } };
  await storage.customers.update(target, { name: "E" }, NO_BODY, null, { ...TEST_ORIGIN, keepsValues: true });
  expect(historyOf(storage, kept)).toEqual(["replace E", ...HISTORIES.kept]);
  expect((await reportOnChain(storage.audit, "t", null)).fault).toBeNull();
  await storage.close();
});

test.each([
  ["to nothing", "UPDATE audit SET previous = 0 WHERE number = 7"],
  ["to itself", "UPDATE audit SET previous = 7 WHERE number = 7"],
  ["to a newer row", "UPDATE audit SET previous = 8 WHERE number = 7"],
  ["past a row", "UPDATE audit SET previous = 1 WHERE number = 7"],
  ["to another customer's row", "UPDATE audit SET previous = 5 WHERE number = 7"],
  ["of a customer to nothing", "UPDATE customers SET last_change = 0 WHERE name = 'D'"],
  ["of a customer to an earlier row", "UPDATE customers SET last_change = 7 WHERE name = 'D'"],
  ["of a customer to a row that is none", "UPDATE customers SET last_change = 99 WHERE name = 'D'"],
])("a link that was set %s is found, and shows nobody else's rows", async (title, sql) => {
  const path = `${directory.path}/link ${title}.db`;
  const { kept } = await writeHistories(path);
  runAll(path, "DROP TRIGGER audit_never_changes", sql);
  const storage = SqliteStorage.open(path);
  const history = historyOf(storage, kept);
  expect(HISTORIES.kept).toEqual(expect.arrayContaining(history));
  expect(history.length).toBeLessThan(HISTORIES.kept.length);
  const { fault } = await reportOnChain(storage.audit, "t", null);
  await storage.close();
  expect(fault).toStartWith("links between the rows of customers are wrong");
});

test("the start of a chain of a tenant that never had a customer is found", async () => {
  const path = `${directory.path}/no customer.db`;
  await writeDatabase(path, "a");
  runOn(path, "INSERT INTO audit_anchors VALUES ('zz', 77, zeroblob(32), 1)");
  const storage = SqliteStorage.open(path);
  const fault = async (tenant: string) => (await reportOnChain(storage.audit, tenant, null)).fault;
  expect(storage.audit.tenants()).toContain("zz");
  expect([await fault("zz"), await fault("default")]).toEqual([
    "the chain begins after row 77, but the tenant never had a customer",
    null,
  ]);
  await storage.close();
});

test("a row can't be replaced by another one of its number", async () => {
  const path = `${directory.path}/replaced.db`;
  await writeDatabase(path, "a", "b");
  const sql =
    "INSERT OR REPLACE INTO audit SELECT tenant, 1, time, 'x', token_prefix, request_id, operation, customer_id, version_before, version_after, changed, without_if_match, with_key, values_digest, hash, previous FROM audit WHERE number = 2";
  expect(() => runOn(path, sql)).toThrow("append-only");
});

const ROW = (number: string) =>
  `SELECT tenant, ${number}, time, 'x', token_prefix, request_id, operation, customer_id, version_before, version_after, changed, without_if_match, with_key, values_digest, hash, previous FROM audit WHERE number = 2`;
test.each([
  ["a row with a number that is not the next", `INSERT INTO audit ${ROW("9007199254740990")}`],
  ["an anchor that is no row", "INSERT INTO audit_anchors VALUES ('default', 5000, zeroblob(32), 0)"],
  ["an anchor with another hash", "INSERT INTO audit_anchors VALUES ('default', 2, zeroblob(32), 0)"],
  [
    "an anchor before the one that there is",
    "INSERT OR REPLACE INTO audit_anchors SELECT tenant, 1, hash, time FROM audit_anchors",
  ],
  ["an anchor moved to what is no row", "UPDATE audit_anchors SET number = 5000"],
])("%s is refused", async (title, sql) => {
  const path = `${directory.path}/${title}.db`;
  await writeDatabase(path, "a", "b", "c");
  if (title.includes("moved") || title.includes("before"))
    runOn(path, "INSERT INTO audit_anchors SELECT tenant, number, hash, time FROM audit WHERE number = 1");
  expect(() => runOn(path, sql)).toThrow("append-only");
});
