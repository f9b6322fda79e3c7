import { afterEach, beforeEach, expect, test } from "bun:test";
import { CHAIN_START, type ChainLink, linkAfter } from "../../domain/audit/audit-chain.ts";
import type { AuditEntry } from "../../domain/audit/audit-entry.ts";
import { drawRowVersion } from "../../domain/entity-tag.ts";
import { Workplace } from "../../tests/support/service/server-process.ts";
import { TEST_ORIGIN } from "../../tests/support/service/test-origin.ts";
import { connect } from "../sqlite/files/sqlite-database.ts";
import { SqliteStorage } from "../sqlite/sqlite-storage.ts";
import { AuditRetention } from "./audit-retention.ts";
import { DELETED_ROWS_MAX } from "./audit-store.ts";
import { reportOnChain } from "./chain-report.ts";

const DAY_MS = 86_400_000;

let place: Workplace;
let path: string;
beforeEach(() => {
  place = new Workplace();
  path = `${place.path}/audit.db`;
});
afterEach(() => place.clear());

/** Makes a database whose trail has rows of these ages, of one tenant. */
async function writeTrail(tenant: string, ...agesDays: number[]): Promise<void> {
  await SqliteStorage.open(path).close();
  const database = connect(path);
  let link: ChainLink = CHAIN_START;
  database.transaction(() => {
    database.run("INSERT INTO tenants VALUES (?, ?)", [tenant, crypto.randomUUID()]);
    for (const days of agesDays) {
      const entry: AuditEntry = {
        ...TEST_ORIGIN,
        operation: "create",
        tenant,
        customerId: crypto.randomUUID(),
        timeMs: Date.now() - days * DAY_MS,
        versionBefore: null,
        versionAfter: drawRowVersion(),
        changed: [],
        hasKey: false,
        valuesDigest: null,
        values: null,
      };
      link = linkAfter(link, entry);
      database.run(
        "INSERT INTO audit VALUES (?, ?, ?, ?, ?, ?, 'create', ?, NULL, ?, '', 0, 0, NULL, unhex(?), 0)",
        [
          ...[tenant, link.number, entry.timeMs, entry.client, entry.tokenPrefix, entry.requestId],
          ...[entry.customerId, entry.versionAfter, link.hash],
        ],
      );
    }
  })();
  database.close();
}

const counted = (count: number, days: number): number[] => Array.from({ length: count }, () => days);

test("deletes the rows that are too old of every tenant, many as they are, and no others", async () => {
  await writeTrail("many", ...counted(1_200, 31), 29);
  await writeTrail("young", 29, 31);
  await writeTrail("old", 40, 31);
  const storage = SqliteStorage.open(path);
  const over = Promise.withResolvers<number>();
  const fail = (error: unknown): void => over.reject(error);
  const now = Date.now();
  const retention = new AuditRetention(storage.audit, 30, {
    now: () => now,
    onDeleted: over.resolve,
    onFault: fail,
    onFailure: fail,
  });
  expect(retention).toMatchObject({ rowsDeleted: 0, completedAtMs: 0 });
  expect(await over.promise).toBe(1_202);
  expect(retention).toMatchObject({ rowsDeleted: 1_202, completedAtMs: now });
  await retention.stop();
  const kept = [];
  for (const tenant of storage.audit.tenants()) {
    const { start, rows, fault } = await reportOnChain(storage.audit, tenant, null);
    kept.push([tenant, start.number, rows, fault]);
  }
  await storage.close();
  expect(kept).toEqual([
    ["many", 1_200, 1, null],
    ["old", 2, 0, null],
    // Its second row has an earlier time than its first: a chain loses rows from its start alone.
    ["young", 0, 2, null],
  ]);
});

test("keeps a row that someone changed and all after it, and says so", async () => {
  await writeTrail("acme", 40, 40, 40, 40);
  const database = connect(path);
  database.run("DROP TRIGGER audit_never_changes");
  database.run("UPDATE audit SET client = 'x' WHERE number = 3");
  database.close();
  const storage = SqliteStorage.open(path);
  const found = Promise.withResolvers<string>();
  const retention = new AuditRetention(storage.audit, 30, {
    now: Date.now,
    onDeleted: () => {},
    onFault: (tenant, fault) => found.resolve(`${tenant}: ${fault}`),
    onFailure: (error) => found.reject(error),
  });
  expect(await found.promise).toStartWith("acme: row 3 does not have the hash of its content");
  await retention.stop();
  expect(retention).toMatchObject({ rowsDeleted: 2, completedAtMs: 0 });
  const { start, fault } = await reportOnChain(storage.audit, "acme", null);
  await storage.close();
  expect([start.number, fault]).toEqual([2, expect.stringMatching(/^row 3 /)]);
});

test("is not complete where the database fails", async () => {
  await writeTrail("acme", 40);
  const storage = SqliteStorage.open(path);
  await storage.close();
  const failed = Promise.withResolvers<unknown>();
  const retention = new AuditRetention(storage.audit, 30, {
    now: Date.now,
    onDeleted: () => {},
    onFault: () => {},
    onFailure: failed.resolve,
  });
  expect(await failed.promise).toBeInstanceOf(Error);
  await retention.stop();
  expect(retention).toMatchObject({ rowsDeleted: 0, completedAtMs: 0 });
});

test("is stopped between two deletions", async () => {
  await writeTrail("acme", ...counted(1_200, 40));
  const storage = SqliteStorage.open(path);
  const found = Promise.withResolvers<number>();
  let stopping: Promise<void> | null = null;
  const retention: AuditRetention = new AuditRetention(storage.audit, 30, {
    now: () => {
      stopping ??= retention.stop();
      return Date.now();
    },
    onDeleted: found.resolve,
    onFault: () => {},
    onFailure: found.reject,
  });
  expect(await found.promise).toBe(DELETED_ROWS_MAX);
  await stopping;
  expect(retention).toMatchObject({ rowsDeleted: DELETED_ROWS_MAX, completedAtMs: 0 });
  expect(storage.audit.chainStart("acme").number).toBe(DELETED_ROWS_MAX);
  await storage.close();
});

test.each([
  { setting: { AUDIT_RETENTION_DAYS: "30" }, kept: [3], deleted: 2, completed: /^\d{10}/ },
  { setting: {}, kept: [1, 2, 3], deleted: 0, completed: /^Nan$/ },
])("a service with $setting keeps the rows $kept, and its metrics say so", async (row) => {
  const { setting, kept, deleted, completed } = row;
  await writeTrail("acme", 40, 31, 29);
  const env = { DATABASE_URL: `sqlite:${path}`, SAMPLES: "0", METRICS_ACCESS: "public", ...setting };
  const service = await place.start({ env, services: 1 });
  const numbers = () => {
    const database = connect(path);
    const rows = database
      .query<{ number: number }, []>("SELECT number FROM audit WHERE tenant = 'acme' ORDER BY number")
      .all();
    database.close();
    return rows.map(({ number }) => number);
  };
  const metric = async (name: string): Promise<string | undefined> => {
    const text = await (await fetch(`${service.url}/metrics`)).text();
    return new RegExp(`^${name} (\\S+)$`, "m").exec(text)?.[1];
  };
  while ((await metric("customers_audit_retention_completed_seconds")) === "0")
    await new Promise(setImmediate);
  expect(await metric("customers_audit_retention_completed_seconds")).toMatch(completed);
  expect(await metric("customers_audit_rows_deleted_total")).toBe(`${deleted}`);
  await service.end();
  expect(numbers()).toEqual([...kept]);
  const said = service.log.filter(({ msg }) => String(msg).includes("AUDIT_RETENTION_DAYS"));
  expect(said.map(({ rows }) => rows)).toEqual(kept.length === 3 ? [] : [2]);
});
