import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { NO_BODY, projectionOf } from "../../../domain/projection.ts";
import { openStorage } from "../../../storage/database-url/open-storage.ts";
import { BATCH_SESSION, SESSION } from "../../../storage/postgres/connection/session.ts";
import { auditPartText, auditSearchText } from "../../../storage/postgres/rows/audit-sql.ts";
import {
  createText,
  JUDGE_TEXT,
  readText,
  removeText,
  updateText,
} from "../../../storage/postgres/rows/customer-sql.ts";
import { FIND_TOKEN_TEXT } from "../../../storage/postgres/rows/token-sql.ts";
import { PostgresCluster } from "../../support/postgres/postgres-cluster.ts";

const NAMES = projectionOf(["name", "email"]);
const BATCHES: Readonly<Record<string, string>> = {
  "find tokens": FIND_TOKEN_TEXT,
  read: readText(NAMES),
  update: updateText(NO_BODY, { isSkipping: true, isKeyed: false, keepsValues: false }),
  "update under keys": updateText(NAMES, { isSkipping: true, isKeyed: true, keepsValues: false }),
  "update alone": updateText(NAMES, { isSkipping: false, isKeyed: true, keepsValues: false }),
  "update and keep values": updateText(NAMES, { isSkipping: true, isKeyed: true, keepsValues: true }),
  remove: removeText({ isSkipping: true, isKeyed: true }),
  "remove alone": removeText({ isSkipping: false, isKeyed: false }),
  create: createText({ isKeyed: true, keepsValues: false }),
  "create and keep values": createText({ isKeyed: true, keepsValues: true }),
  judge: JUDGE_TEXT,
};

let cluster: PostgresCluster;
let url = "";
beforeAll(async () => {
  // No ANALYZE comes by itself: a plan must be right on tables of which nothing is known.
  cluster = await PostgresCluster.start({ settings: { autovacuum: "off" } });
  url = await cluster.createDatabase();
  await (await openStorage(url)).close();
});
afterAll(() => cluster.stop());

/** Runs `sql` in a session of batches that has prepared this text as `batch`. */
function inSession(text: string, sql: (call: string) => string): Promise<string> {
  const settings = Object.entries(BATCH_SESSION).map(([name, value]) => `SET ${name} = '${value}'`);
  const params = new Set(text.match(/\$\d+/g));
  const call = `EXECUTE batch(${[...params].map(() => "'{}'").join()})`;
  return cluster.query(url, [...settings, `PREPARE batch AS ${text}`, sql(call)].join("; "));
}

describe.each([
  { title: "an empty table", rows: 0 },
  { title: "20,000 customers that were never analyzed", rows: 20_000 },
])("on $title a batch finds each row by its primary key, in its own order", ({ rows }) => {
  beforeAll(async () => {
    await cluster.query(
      url,
      `INSERT INTO customers.customers SELECT 't', gen_random_uuid(), 'n', 'e@e', 'e@e', 'active', 'abcdefghijklmnop', 0 FROM generate_series(1, ${rows})`,
    );
  });

  test.each(Object.entries(BATCHES))("%s", async (_, text) => {
    const plan = await inSession(text, (call) => `EXPLAIN ${call}`);
    expect(plan).not.toMatch(/Seq Scan|Bitmap|Hash Join|Merge Join/);
    for (const [, index] of plan.matchAll(/ using (\w+)/g)) expect(index).toEndWith("_pkey");
  });
});

test.each(Object.entries(BATCHES))("%s is planned once, though batches differ in size", async (_, text) => {
  const counted = await inSession(
    text,
    (call) => `${`${call}; `.repeat(8)} SELECT 'custom plans: ' || custom_plans FROM pg_prepared_statements`,
  );
  expect(counted).toEndWith("custom plans: 0");
});

describe("a search of the audit trail reads the rows of its part by an index, and never the whole table", () => {
  const customer = "01890000-0000-7000-8000-000000000000";
  beforeAll(async () => {
    await cluster.query(
      url,
      `INSERT INTO customers.audit (tenant, customer_id, number, time, client, token_prefix, request_id, operation, changed, without_if_match, with_key, hash)
        SELECT 't', gen_random_uuid(), n, n, 'c', '', '', 'patch', '', 0, 0, sha256(''::bytea) FROM generate_series(1, 20000) AS n`,
    );
  });

  test.each([
    { part: auditPartText({ isOneCustomer: false }), values: ["0", "1000"], index: "audit_by_number" },
    { part: auditPartText({ isOneCustomer: true }), values: ["0", "1000", customer], index: "audit_pkey" },
    {
      part: auditSearchText({ isOneCustomer: false }),
      values: ["0", "1000", "0", "9", "c"],
      index: "audit_by_number",
    },
    {
      part: auditSearchText({ isOneCustomer: true }),
      values: ["0", "1000", "0", "9", "c", customer],
      index: "audit_pkey",
    },
  ])("$values: $index", async ({ part, values, index }) => {
    const settings = Object.entries(SESSION).map(([name, value]) => `SET ${name} = '${value}'`);
    const call = `EXPLAIN EXECUTE search('t', ${values.map((value) => `'${value}'`).join()})`;
    for (const analyze of ["SELECT 1", "ANALYZE customers.audit"]) {
      const plan = await cluster.query(
        url,
        [...settings, analyze, `PREPARE search AS ${part}`, call].join("; "),
      );
      expect(plan).not.toContain("Seq Scan");
      const used = [...plan.matchAll(/ (?:using|on) (audit_\w+)/g)].map(([, name]) => name);
      expect(used.filter((name) => name !== "audit_values" && name !== "audit_values_pkey")).toEqual([index]);
    }
  });
});
