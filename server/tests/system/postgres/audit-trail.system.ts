import { afterAll, expect, test } from "bun:test";
import { Client } from "pg";
import { CHAIN_START } from "../../../domain/audit/audit-chain.ts";
import { NO_BODY } from "../../../domain/projection.ts";
import { reportOnChain } from "../../../storage/audit/chain-report.ts";
import { sealBacklog } from "../../../storage/audit/sealing-timer.ts";
import { copyDatabase } from "../../../storage/database-url/copy-database.ts";
import { openStorage } from "../../../storage/database-url/open-storage.ts";
import { withPostgresSource } from "../../../storage/postgres/postgres-copy.ts";
import { PostgresStorage } from "../../../storage/postgres/postgres-storage.ts";
import { grantsFor } from "../../../storage/postgres/schema/grants.ts";
import { PostgresCluster } from "../../support/postgres/postgres-cluster.ts";
import { Workplace } from "../../support/service/server-process.ts";
import { TEST_ORIGIN } from "../../support/service/test-origin.ts";

const cluster = await PostgresCluster.start();
afterAll(() => cluster.stop());

const ADA = { name: "Ada", email: "ada@example.com", status: "active" } as const;

test("a copy reads each row of the audit trail once, not once a page", async () => {
  const url = await cluster.createDatabase();
  await (await PostgresStorage.open(url)).close();
  const rows = 6_000;
  await cluster.query(
    url,
    `INSERT INTO customers.audit (tenant, customer_id, number, time, client, token_prefix, request_id, operation, changed,
      without_if_match, with_key, hash)
    SELECT 't' || n % 2, gen_random_uuid(), n / 2 + 1, 0, 'c', 'p', 'r', 'patch', '', 0, 0, decode(repeat('00', 32), 'hex')
    FROM generate_series(0, ${rows - 1}) AS n;
    ANALYZE customers.audit;
    SELECT pg_stat_reset()`,
  );
  let read = 0;
  await withPostgresSource(url, {}, async (source) => {
    for (let after: readonly (string | null)[] | null = null; ; ) {
      const page = await source.page("audit", after, 300);
      read += page.length;
      if (page.length === 0) break;
      after = page.at(-1) ?? null;
    }
  });
  const text = "SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_user_tables WHERE relname = 'audit'";
  const counted = async () => Number(await cluster.query(url, text));
  // A session hands over its counts when it ends.
  while ((await counted()) < rows) await Bun.sleep(20);
  expect(read).toBe(rows);
  expect(await counted()).toBeLessThan(2 * rows);
}, 30_000);

test("a cursor of a history goes on after a move to PostgreSQL", async () => {
  await using stack = new AsyncDisposableStack();
  const place = stack.adopt(new Workplace(), (made) => made.clear());
  const file = `sqlite:${place.path}/from.db`;
  const source = await openStorage(file);
  for (let n = 0; n < 20; n += 1) await source.customers.create("another", ADA, 0, null, TEST_ORIGIN);
  const made = await source.customers.create("t", ADA, 0, null, TEST_ORIGIN);
  if (made.kind !== "created") throw new Error(made.kind);
  let expected = made.rowVersion;
  for (let n = 0; n < 5; n += 1) {
    const target = { tenant: "t", id: made.id, expected };
    const outcome = await source.customers.update(target, { name: `${n}` }, NO_BODY, null, TEST_ORIGIN);
    if (outcome.kind !== "applied") throw new Error(outcome.kind);
    expected = outcome.rowVersion;
  }
  const query = { tenant: "t", customerId: made.id, limit: 3, withValues: true };
  const first = await source.audit.history({ ...query, before: null });
  const second = await source.audit.history({ ...query, before: first.last });
  await source.close();
  const url = await cluster.createDatabase();
  await copyDatabase(file, url);
  const moved = await openStorage(url);
  const versions = (page: typeof second) => page.items.map(({ versionAfter }) => versionAfter);
  expect(versions(await moved.audit.history({ ...query, before: first.last }))).toEqual(versions(second));
  await moved.close();
});

test("a sealing that finds no row writes nothing: a database without writes stays as it is", async () => {
  const url = await cluster.createDatabase();
  const storage = await PostgresStorage.open(url);
  // Each transaction that writes or locks something takes the next one.
  const next = () => cluster.query(url, "SELECT pg_snapshot_xmax(pg_current_snapshot())");
  const before = await next();
  for (let n = 0; n < 5; n += 1) expect(await storage.audit.seal()).toBe(0);
  expect(await next()).toBe(before);
  await storage.close();
});

test("a sealing that waits for the one under way leaves no row of before it without a place", async () => {
  const url = await cluster.createDatabase();
  const storage = await PostgresStorage.open(url);
  await storage.customers.create("t", ADA, 0, null, TEST_ORIGIN);
  // Another service that seals holds the row of `meta`.
  const other = new Client({ connectionString: url });
  await other.connect();
  await other.query("BEGIN; SELECT only_row FROM customers.meta FOR UPDATE");
  expect(await storage.audit.seal()).toBe(0);
  const waiting = storage.audit.seal(true);
  const waits = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'";
  while ((await cluster.query(url, waits)) === "0") await Bun.sleep(20);
  await other.query("COMMIT");
  await other.end();
  expect(await waiting).toBe(1);
  await storage.close();
});

test("a start of a chain that is no row is refused to the role of the services, of an unknown tenant too", async () => {
  const url = await cluster.createDatabase();
  await (await PostgresStorage.open(url)).close();
  await cluster.query(
    url,
    `CREATE ROLE retaining LOGIN; ${grantsFor("retaining", { hasAuditRetention: true })}`,
  );
  const insertion = cluster.query(
    url.replace("postgres@", "retaining@"),
    "INSERT INTO customers.audit_anchors VALUES ('zz', 77, decode(repeat('00', 32), 'hex'), 1)",
  );
  await expect(insertion).rejects.toThrow("append-only");
});

const START = (tenant: string, number: number) =>
  `INSERT INTO audit_anchors SELECT tenant, number, hash, time FROM audit WHERE tenant = '${tenant}' AND number = ${number};`;

test.each([
  [
    "a start behind the last row",
    "INSERT INTO audit_anchors VALUES ('t', 999, decode(repeat('00', 32), 'hex'), 1)",
    "row 1 is there, though the chain begins with row 1000",
  ],
  [
    "a start with rows before it that were changed",
    `${START("t", 4)} UPDATE audit SET client = 'x' WHERE number = 2`,
    "row 1 is there, though the chain begins with row 5",
  ],
  [
    "a start with the hash of another row",
    `${START("t", 3)} UPDATE audit_anchors SET number = 2; DELETE FROM audit WHERE number <= 2`,
    "row 3 does not have the hash",
  ],
  [
    "a row before the first one",
    "ALTER TABLE audit DROP CONSTRAINT audit_number_check; UPDATE audit SET number = -9223372036854775808 WHERE number = 4",
    "row -9223372036854776000 is there, though the chain begins with row 1",
  ],
  [
    "a start of a tenant that never had a customer",
    "INSERT INTO audit_anchors VALUES ('zz', 77, decode(repeat('00', 32), 'hex'), 1)",
    "the chain begins after row 77, but the tenant never had a customer",
  ],
])("without its triggers, %s is found", async (_, sql, fault) => {
  const url = await cluster.createDatabase();
  const storage = await PostgresStorage.open(url);
  const { customers, audit } = storage;
  for (let n = 0; n < 4; n += 1) await customers.create("t", ADA, 0, null, TEST_ORIGIN);
  await sealBacklog(audit);
  const disabled = ["audit", "audit_anchors"].map((table) => `ALTER TABLE ${table} DISABLE TRIGGER USER;`);
  await cluster.query(url, `SET search_path = customers; ${disabled.join(" ")} ${sql}`);
  const reports = await Promise.all(
    (await audit.tenants()).map((tenant) => reportOnChain(audit, tenant, null)),
  );
  expect(reports.map((report) => report.fault).find((found) => found !== null)).toStartWith(fault);
  await storage.close();
});

test("a column that another program changes without triggers and foreign keys is found, but for those that audit.md names", async () => {
  const url = await cluster.createDatabase();
  const storage = await PostgresStorage.open(url);
  const { customers, audit } = storage;
  const listed = await cluster.query(
    url,
    `SELECT table_name, column_name, data_type FROM information_schema.columns
    WHERE table_schema = 'customers' AND table_name IN ('audit', 'audit_values', 'audit_anchors')
    ORDER BY table_name, ordinal_position`,
  );
  const other: Readonly<Record<string, (column: string) => string>> = {
    text: (column) => (column === "operation" ? "'delete'" : "'x'"),
    uuid: () => "gen_random_uuid()",
    bigint: (column) => `${column} + 100`,
    smallint: (column) => `1 - ${column}`,
    bytea: (column) => `decode(repeat('00', coalesce(length(${column}), 32)), 'hex')`,
  };
  const unfound: string[] = [];
  for (const [index, line] of listed.split("\n").entries()) {
    const [table = "", column = "", type = ""] = line.split("|");
    const tenant = `t${index}`;
    // The row that is changed keeps no values, which its key would bind to it.
    for (const keepsValues of [true, true, true, false, true])
      await customers.create(tenant, ADA, 0, null, { ...TEST_ORIGIN, keepsValues });
    await sealBacklog(audit);
    const [first] = await audit.rows({ tenant, after: null, limit: 1 });
    if (first === undefined) throw new Error("no rows");
    expect(await audit.moveStart(CHAIN_START, first)).toBe(true);
    expect((await reportOnChain(audit, tenant, null)).fault).toBeNull();
    const where = {
      audit: "number = 4",
      audit_values: `id = (SELECT id FROM audit WHERE tenant = '${tenant}' AND number = 3)`,
      audit_anchors: "number = 1",
    }[table];
    const sql = `UPDATE ${table} SET ${column} = ${other[type]?.(column)} WHERE tenant = '${tenant}' AND ${where} RETURNING 1`;
    const changed = await cluster.query(
      url,
      `SET session_replication_role = replica; SET search_path = customers; ${sql}`,
    );
    expect(changed).toBe("1");
    const { fault } = await reportOnChain(audit, tenant, null);
    if (fault === null) unfound.push(`${table}.${column}`);
  }
  await storage.close();
  expect(unfound).toEqual(["audit.id", "audit_anchors.time"]);
}, 60_000);
