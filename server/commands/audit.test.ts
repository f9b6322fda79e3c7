import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { CHAIN_START } from "../domain/audit/audit-chain.ts";
import { sealBacklog } from "../storage/audit/sealing-timer.ts";
import { openStorage } from "../storage/database-url/open-storage.ts";
import { connect } from "../storage/sqlite/files/sqlite-database.ts";
import { SqliteStorage } from "../storage/sqlite/sqlite-storage.ts";
import { Workplace } from "../tests/support/service/server-process.ts";
import { TEST_ORIGIN } from "../tests/support/service/test-origin.ts";

let place: Workplace;
beforeEach(() => {
  place = new Workplace();
});
afterEach(() => place.clear());

/** Three writes of two tenants. @returns the id of the first customer */
async function fill(): Promise<string> {
  mkdirSync(`${place.path}/data`, { recursive: true });
  const storage = await openStorage(place.databaseUrl);
  const ada = { name: "Ada", email: "ada@example.com", status: "active" } as const;
  const create = (tenant: string, client: string) =>
    storage.customers.create(tenant, ada, 0, null, { ...TEST_ORIGIN, operation: "create", client });
  const made = await create("acme", "shop");
  if (made.kind !== "created") throw new Error(made.kind);
  const target = { tenant: "acme", id: made.id, expected: made.rowVersion };
  await storage.customers.update(target, { name: "B" }, { kind: "none", fields: [] }, null, {
    ...TEST_ORIGIN,
    operation: "patch",
    client: "billing-sync",
    isWithoutIfMatch: true,
  });
  await create("beta", "shop");
  await storage.close();
  return made.id;
}

const lines = (text: string) =>
  text
    .trimEnd()
    .split("\n")
    .filter(Boolean)
    .map((line) => JSON.parse(line));

test("audit verify says of a trail without rows that it checked nothing", async () => {
  mkdirSync(`${place.path}/data`, { recursive: true });
  await (await openStorage(place.databaseUrl)).close();
  expect(await place.command(["audit", "verify"])).toMatchObject({
    code: 0,
    stdout: "",
    stderr: "The audit trail has no rows: there is nothing to check.\n",
  });
});

test("prints each accepted write as a line of JSON, by tenant, customer, client and time", async () => {
  const id = await fill();
  const audit = async (...options: string[]) => {
    const { code, stdout, stderr } = await place.command(["audit", ...options]);
    expect([code, stderr]).toEqual([0, stdout === "" ? "No row of the audit trail matches.\n" : ""]);
    return lines(stdout);
  };
  const all = await audit();
  expect(all.map(({ tenant, number, client, operation }) => [tenant, number, client, operation])).toEqual([
    ["acme", 1, "shop", "create"],
    ["acme", 2, "billing-sync", "patch"],
    ["beta", 1, "shop", "create"],
  ]);
  expect(all[1]).toMatchObject({
    customer: id,
    changed: ["name"],
    requestId: "test",
    withoutIfMatch: true,
    versionBefore: all[0].versionAfter,
  });
  expect(await audit("list", "--tenant", "beta")).toEqual(all.slice(2));
  expect(await audit("--client", "shop")).toEqual([all[0], all[2]]);
  expect(await audit("--client", "shpo")).toEqual([]);
  expect(await audit("--customer", id.toUpperCase())).toEqual(all.slice(0, 2));
  expect(await audit("--since", "1h")).toEqual(all);
  expect(await audit("--until", "2020-01-01")).toEqual([]);
});

test("prints the values that are kept, and verify says of how many rows", async () => {
  const id = await fill();
  const storage = await openStorage(place.databaseUrl);
  const target = { tenant: "acme", id, expected: { anyExcept: [] } };
  const origin = { ...TEST_ORIGIN, operation: "patch", client: "keeper", keepsValues: true } as const;
  const projection = { kind: "none", fields: [] } as const;
  await storage.customers.update(target, { name: "C" }, projection, null, origin);
  await storage.close();
  const printed = await place.run(["audit", "--tenant", "acme"]);
  expect(lines(printed.stdout).map(({ values, valuesDigest }) => [values, valuesDigest])).toEqual([
    [null, null],
    [null, null],
    [{ name: { before: "B", after: "C" } }, expect.stringMatching(/^[0-9a-f]{64}$/)],
  ]);
  const verified = await place.run(["audit", "verify", "--tenant", "acme"]);
  expect(verified.stdout).toMatch(/^acme: 3 rows in order, .*; values of 1 row kept, of 0 rows erased\n$/);
});

test("the row is named whose values are no longer what was written", async () => {
  const path = `${place.path}/damaged.db`;
  const storage = SqliteStorage.open(path);
  const origin = { ...TEST_ORIGIN, operation: "create", keepsValues: true } as const;
  const ada = { name: "Ada", email: "ada@example.com", status: "active" } as const;
  const made = await storage.customers.create("acme", ada, 0, null, origin);
  await storage.close();
  if (made.kind !== "created") throw new Error(made.kind);
  const database = connect(path);
  database.run("DROP TRIGGER audit_values_never_change");
  database.run("UPDATE audit_values SET content = 'nothing'");
  database.close();
  const of = (row: string) =>
    `The values that the audit trail of acme keeps beside ${row}, of customer ${made.id}, are damaged. Run \`customers-server audit verify\`, and compare the database with a backup.\n`;
  for (const [command, row] of [
    [["audit"], "row 1"],
    [["person", "find", "grace@example.com"], "a row"],
    [["person", "export", made.id], "row 1"],
  ] as const) {
    const ran = await place.command([...command, "--database-url", `sqlite:${path}`]);
    expect([ran.code, ran.stderr]).toEqual([1, of(row)]);
  }
  const verified = await place.command(["audit", "verify", "--database-url", `sqlite:${path}`]);
  expect(verified.stdout).toStartWith("acme: row 1 does not have the digest of the values");
});

test.each([
  [["--customer", "x"], '--customer "x" must be the id of a customer, a UUID.'],
  [["--since", "2027-02-30"], '--since "2027-02-30" must be a time in UTC'],
  [["--until", "soon"], '--until "soon" must be a time in UTC'],
  [["--client", ""], '--client "" must be the name of a client'],
  [["--tenant", "acem"], "No tenant acem ever had a customer. Correct --tenant."],
  [["--tenant", ""], 'No tenant "" ever had a customer. Correct --tenant.'],
  [["verify", "--tenant", "acem"], "No tenant acem ever had a customer. Correct --tenant."],
  [["verify", "--tenant", ""], 'No tenant "" ever had a customer. Correct --tenant.'],
  [["verify", "--known", "/nowhere"], "--known /nowhere can't be read"],
  [["verify", "--known", "/dev/null"], "--known /dev/null is empty"],
])("audit %j is refused", async (options, message) => {
  await fill();
  const { code, stderr } = await place.command(["audit", ...options]);
  expect(code).toBe(1);
  expect(stderr).toStartWith(message);
});

test("verify finds a whole trail in order, and by the heads of an earlier look one that was cut off", async () => {
  await fill();
  const good = await place.command(["audit", "verify"]);
  expect(good).toMatchObject({ code: 0, stderr: "" });
  expect(good.stdout).toMatch(
    /^acme: 2 rows in order, up to row 2 with the hash [0-9a-f]{64}\nbeta: 1 rows? /,
  );
  const { stdout } = await place.command(["audit", "verify", "--json"]);
  const known = `${place.path}/known.ndjson`;
  writeFileSync(known, stdout);
  await fill();
  expect((await place.command(["audit", "verify", "--known", known])).code).toBe(0);
  const mistyped = await place.command(["audit", "verify", "--known", known, "--tenant", "acem"]);
  expect(mistyped).toEqual({
    code: 1,
    stdout: "",
    stderr: "No tenant acem ever had a customer. Correct --tenant.\n",
  });
  writeFileSync(known, stdout.replace('"number":2', '"number":9'));
  const cut = await place.command(["audit", "verify", "--known", known]);
  expect(cut.code).toBe(1);
  expect(cut.stdout).toContain("acme: rows 5 to 9 were there at the earlier look, and are missing");
  expect(cut.stderr).toStartWith("The audit trail is not whole, of: acme.");
  writeFileSync(known, stdout.replaceAll('"acme"', '"gone"'));
  const gone = await place.command(["audit", "verify", "--known", known, "--tenant", "gone"]);
  expect(gone).toMatchObject({ code: 1, stderr: expect.stringContaining("not whole, of: gone.") });
});

test("verify holds over rows that retention removed, and says which, and that an older head can't be compared", async () => {
  await fill();
  const known = `${place.path}/known.ndjson`;
  const audit = async (...options: string[]) => {
    const { code, stdout } = await place.command(["audit", ...options]);
    expect(code).toBe(0);
    return stdout;
  };
  const heads = await audit("verify", "--json");
  await fill();
  const storage = await openStorage(place.databaseUrl);
  await sealBacklog(storage.audit);
  const last = (await storage.audit.rows({ tenant: "acme", after: 0, limit: 3 })).at(-1);
  if (last === undefined) throw new Error("no rows");
  expect(await storage.audit.moveStart(CHAIN_START, last)).toBe(true);
  await storage.close();
  const time = new Date(last.timeMs).toISOString();
  const rows = lines(await audit("--tenant", "acme"));
  expect(rows.map(({ number }) => number)).toEqual([4]);
  const removed = `acme: 1 row in order, up to row 4 with the hash ${rows[0].hash}; retention removed the rows up to row 3, of ${time}`;
  expect(await audit("verify", "--tenant", "acme")).toBe(`${removed}\n`);
  writeFileSync(known, heads);
  expect(await audit("verify", "--tenant", "acme", "--known", known)).toBe(
    `${removed}, and row 2 of the earlier look with them: it can't be compared\n`,
  );
  const json = lines(await audit("verify", "--known", known, "--json"));
  expect(json).toMatchObject([
    { tenant: "acme", rows: 1, number: 4, removed: 3, removedUntil: time, knownRemoved: true, fault: null },
    { tenant: "beta", rows: 2, number: 2, removed: 0, removedUntil: null, knownRemoved: false, fault: null },
  ]);
  writeFileSync(known, json.map((line) => JSON.stringify(line)).join("\n"));
  expect(await audit("verify", "--tenant", "acme", "--known", known)).toBe(`${removed}\n`);
});
