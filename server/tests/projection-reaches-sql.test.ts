import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { BUILT_IN_POLICY } from "../config/policy-file.ts";
import { openDatabase } from "../storage/sqlite/files/sqlite-database.ts";
import { SqliteStorage } from "../storage/sqlite/sqlite-storage.ts";
import { WatchedDatabase } from "./support/database/watched-database.ts";
import { TestService } from "./support/service/test-service.ts";

// What is fetched is what was asked for: a projection that only trims the answer would read personal
// data that the caller may not see. So these tests look at the statements that reach SQLite.
const directory = mkdtempSync(join(tmpdir(), "projection-"));
const path = join(directory, "customers.db");
openDatabase(path).close();
const database = new WatchedDatabase(path, { readwrite: true, create: false, strict: true });
const service = await TestService.start({
  storage: new SqliteStorage(database, database),
  policy: `[roles.clerk]\nread = ["id", "name"]\noperations = ["get", "list", "create", "replace", "patch"]\n${BUILT_IN_POLICY}`,
});
let customer: Awaited<ReturnType<typeof service.customer>>;
beforeAll(async () => {
  customer = await service.customer();
  for (const role of ["admin", "clerk", "support", "viewer"]) await service.token({ role });
  for (const scope of [
    { fields: "name", operations: null },
    { fields: null, operations: "list" },
  ]) {
    await service.token({ role: "admin", scope });
  }
});
afterAll(async () => {
  await service.stop();
  rmSync(directory, { recursive: true });
});

async function statementsOf(...request: Parameters<typeof service.send>): Promise<[number, string[]]> {
  database.takeCustomerStatements();
  const { status } = await service.send(...request);
  return [status, database.takeCustomerStatements()];
}

describe("the SELECT names the fields asked for and row_version alone", () => {
  test.each([
    ["?fields=name", "admin", "name, row_version"],
    ["?fields=STATUS,Id", "admin", "id, status, row_version"],
    ["", "admin", "id, name, email, row_version"],
    ["", "support", "id, name, row_version"],
    ["", "clerk", "id, name, row_version"],
  ])("GET %s by %s: %s", async (query, role, columns) => {
    const [status, statements] = await statementsOf("GET", `${customer.path}${query}`, { caller: { role } });
    expect(status).toBe(200);
    expect(statements).toEqual([`SELECT ${columns} FROM customers WHERE tenant = ? AND id = ?`]);
  });

  test.each([
    ["", "name", "name, row_version"],
    ["?fields=email", "name,email", "email, row_version"],
    ["", "status", "row_version"],
  ])("GET %s with a token for %s: %s", async (query, fields, columns) => {
    const caller = { role: "admin", scope: { fields, operations: null } };
    await service.token(caller);
    const [status, statements] = await statementsOf("GET", `${customer.path}${query}`, { caller });
    expect(status).toBe(200);
    expect(statements).toEqual([`SELECT ${columns} FROM customers WHERE tenant = ? AND id = ?`]);
  });

  test("a list adds the id as its paging key, and the filter's column", async () => {
    const [, statements] = await statementsOf("GET", "/customers?fields=name&status=active");
    expect(statements).toEqual([
      "SELECT name, row_version, id AS page_key FROM customers WHERE tenant = ? AND status = ? ORDER BY id LIMIT ?",
    ]);
  });

  test("a write reads back what its answer shows: the version alone, or what the caller prefers and may read", async () => {
    const put = { body: { name: "B", email: "b@example.com" }, headers: { "if-match": customer.etag } };
    const [status, plain] = await statementsOf("PUT", customer.path, put);
    expect([status, plain]).toEqual([
      204,
      [
        "SELECT row_version, last_change, name <> ? AS differs_in_name, email <> ? AS differs_in_email FROM customers WHERE tenant = ? AND id = ?",
        "UPDATE customers SET name = ?, email = ?, email_folded = ?, row_version = ?, last_change = ? WHERE tenant = ? AND id = ? AND row_version = ?",
      ],
    ]);
    const { etag } = await service.send("GET", customer.path);
    const headers = { "if-match": etag, prefer: "return=representation" };
    const [, preferred] = await statementsOf("PATCH", customer.path, {
      caller: { role: "clerk" },
      body: { email: "c@example.com" },
      headers,
    });
    expect(preferred).toEqual([
      "SELECT row_version, last_change, email <> ? AS differs_in_email FROM customers WHERE tenant = ? AND id = ?",
      "UPDATE customers SET email = ?, email_folded = ?, row_version = ?, last_change = ? WHERE tenant = ? AND id = ? AND row_version = ? RETURNING id, name, row_version",
    ]);
  });
});

describe("a stale write compares what it sends with what is stored, in columns that its caller may read", () => {
  const body = { name: "B", email: "b@example.com" };
  const rows: [string, string, object, string[]][] = [
    ["admin", "PUT", body, ["name, email"]],
    ["admin", "PATCH", { email: body.email }, ["email"]],
    ["clerk", "PATCH", { name: body.name }, ["name"]],
    ["clerk", "PUT", body, []],
    ["clerk", "PATCH", { email: body.email }, []],
  ];
  test.each(rows)("%s: %s %j reads %j", async (role, method, sent, columns) => {
    const headers = { "if-match": '"AAAAAAAAAAAAAAAA"' };
    const [status, statements] = await statementsOf(method, customer.path, {
      caller: { role },
      body: sent,
      headers,
    });
    expect(status).toBe(412);
    const reads = statements.flatMap((sql) => /^SELECT (.*), row_version FROM/.exec(sql)?.[1] ?? []);
    expect(reads).toEqual(columns);
  });
});

describe("a request refused by the first six checks runs no statement on customers", () => {
  const body = { name: "x", email: "x@y" };
  const ifMatch = { "if-match": '"AAAAAAAAAAAAAAAA"' };
  test.each<[string, number, Parameters<typeof service.send>]>([
    ["an unknown field", 400, ["GET", "/customers/01890000-0000-7000-8000-000000000000?fields=nope"]],
    ["an unknown field of a customer", 400, ["GET", "{customer}?fields=nope"]],
    ["an empty field", 400, ["GET", "{customer}?fields="]],
    ["too many fields", 400, ["GET", `{customer}?fields=${Array(17).fill("id").join()}`]],
    ["an unknown parameter", 400, ["GET", "{customer}?field=name"]],
    ["a forbidden field", 403, ["GET", "{customer}?fields=email", { caller: { role: "support" } }]],
    ["a forbidden field in a list", 403, ["GET", "/customers?fields=email", { caller: { role: "support" } }]],
    [
      "a forbidden filter",
      403,
      ["POST", "/customers/search", { caller: { role: "support" }, body: { email: "a@b" } }],
    ],
    [
      "a forbidden operation",
      403,
      ["PUT", "{customer}", { caller: { role: "viewer" }, body, headers: ifMatch }],
    ],
    [
      "a field outside of the token's scope",
      403,
      [
        "GET",
        "{customer}?fields=email",
        { caller: { role: "admin", scope: { fields: "name", operations: null } } },
      ],
    ],
    [
      "an operation outside of the token's scope",
      403,
      ["GET", "{customer}", { caller: { role: "admin", scope: { fields: null, operations: "list" } } }],
    ],
    ["no token", 401, ["GET", "{customer}", { caller: null }]],
    ["no If-Match", 428, ["PUT", "{customer}", { body }]],
    ["a blank If-Match", 428, ["DELETE", "{customer}", { headers: { "if-match": " " } }]],
    ["an unknown field on a write", 400, ["PUT", "{customer}?fields=nope", { body, headers: ifMatch }]],
    [
      "a forbidden field on a write",
      403,
      ["PUT", "{customer}?fields=email", { caller: { role: "clerk" }, body, headers: ifMatch }],
    ],
    [
      "a forbidden field on a create",
      403,
      ["POST", "/customers?fields=email", { caller: { role: "clerk" }, body }],
    ],
    ["an id that can't be one", 404, ["GET", "/customers/42"]],
    ["a bad body of a create", 422, ["POST", "/customers", { body: {} }]],
  ])("%s: %d", async (_, status, [method, target, options]) => {
    const path = target.replace("{customer}", customer.path);
    expect(await statementsOf(method, path, options)).toEqual([status, []]);
  });

  test("a write with a mangled tag or a bad body reads the row version alone", async () => {
    const select = "SELECT row_version FROM customers WHERE tenant = ? AND id = ?";
    const { etag } = await service.send("GET", customer.path);
    for (const headers of [{ "if-match": `W/${etag}` }, { "if-match": etag }]) {
      const [status, statements] = await statementsOf("PUT", customer.path, { body: {}, headers });
      expect([status >= 400, statements]).toEqual([true, [select]]);
    }
  });
});
