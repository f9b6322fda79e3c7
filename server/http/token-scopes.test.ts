import { afterAll, describe, expect, test } from "bun:test";
import { FIELD_NAMES, type FieldName } from "../domain/customer/field-registry.ts";
import { OPERATIONS, type Operation, scopeOf } from "../domain/policy/rights.ts";
import { TestService } from "../tests/support/service/test-service.ts";

const service = await TestService.start();
afterAll(() => service.stop());

const BODY = { name: "Ada", email: "ada@example.com" };
/** Of all fields, in the order of the registry. */
const subsets = Array.from({ length: 2 ** FIELD_NAMES.length }, (_, bits) =>
  FIELD_NAMES.filter((_, at) => (bits & (1 << at)) !== 0),
);

describe("a token reads the fields that both its scope and its role allow, and no others", () => {
  const roles: Record<string, readonly FieldName[]> = {
    admin: FIELD_NAMES,
    support: ["id", "name", "status"],
  };
  const rows = Object.entries(roles).flatMap(([role, readable]) =>
    subsets.map((fields) => ({ role, readable, fields })),
  );
  test.each(rows)("$role with $fields", async ({ role, readable, fields }) => {
    const { path } = await service.customer({ email: "secret@example.com" });
    const caller = { role, scope: scopeOf(fields, null) };
    for (const name of FIELD_NAMES) {
      const isAllowed = fields.includes(name) && readable.includes(name);
      for (const target of [path, "/customers"]) {
        const reply = await service.send("GET", `${target}?fields=${name.toUpperCase()}`, { caller });
        expect([name, reply.status]).toEqual([name, isAllowed ? 200 : 403]);
        if (!isAllowed) expect(reply.json.forbiddenFields).toEqual([name]);
      }
      const search = { caller, body: { limit: 1, fields: [name] } };
      expect((await service.send("POST", "/customers/search", search)).status).toBe(isAllowed ? 200 : 403);
    }
    const byDefault = fields.filter((name) => name !== "status" && readable.includes(name));
    expect(Object.keys((await service.send("GET", path, { caller })).json)).toEqual(byDefault);
    const written = await service.send("POST", "/customers", { caller, body: BODY });
    if (written.status === 201) expect(Object.keys(written.json)).toEqual(byDefault);
    const emailed = await service.send("POST", "/customers/search", { caller, body: { email: BODY.email } });
    expect(emailed.status).toBe(fields.includes("email") && readable.includes("email") ? 200 : 403);
    const typo = await service.send("GET", `${path}?fields=emial`, { caller });
    expect(typo.json.selectableFields).toEqual(readable.filter((name) => fields.includes(name)));
  });
});

describe("a token does what both its scope and its role allow, and nothing else", () => {
  type Row = readonly [operation: Operation, method: string, body?: object];
  const requests: readonly Row[] = [
    ["get", "GET"],
    ["replace", "PUT", BODY],
    ["patch", "PATCH", BODY],
    ["delete", "DELETE"],
    ["list", "GET"],
    ["create", "POST", BODY],
  ];
  test.each(OPERATIONS.map((operation) => ({ operation })))("$operation alone", async ({ operation }) => {
    for (const role of ["admin", "viewer"]) {
      const caller = { role, scope: scopeOf(null, [operation]) };
      for (const [asked, method, body] of requests) {
        const { path, etag } = await service.customer();
        const target = asked === "list" || asked === "create" ? "/customers" : path;
        const { status } = await service.send(method, target, {
          caller,
          body,
          headers: { "if-match": etag },
        });
        const isHeld = role === "admin" || asked === "get" || asked === "list";
        expect([role, asked, status === 403]).toEqual([role, asked, !(isHeld && asked === operation)]);
      }
    }
  });

  test("a scope without operations allows none, and one with `metrics` gives a tenant no metrics", async () => {
    const nothing = { role: "admin", scope: { fields: null, operations: "" } };
    expect((await service.send("GET", "/customers", { caller: nothing })).json.code).toBe(
      "forbidden-operation",
    );
    const metrics = { role: "admin", scope: { fields: null, operations: "metrics" } };
    expect((await service.send("GET", "/metrics", { caller: metrics })).status).toBe(403);
    const monitor = { role: "monitor", scope: { fields: null, operations: "get" } };
    expect((await service.send("GET", "/metrics", { caller: monitor })).status).toBe(403);
  });

  test("a name that this version does not know allows nothing, and takes nothing away", async () => {
    const { path } = await service.customer();
    const caller = { role: "admin", scope: { fields: "name,shoeSize", operations: "get,dream" } };
    expect((await service.send("GET", path, { caller })).json).toEqual({ name: "Ada" });
  });
});

test("a copy is confirmed to a token with a scope only where its fields were named", async () => {
  const { path, etag } = await service.customer();
  const hidden: FieldName[] = ["id", "name"];
  const options = { caller: { scope: scopeOf(hidden, null) }, headers: { "if-none-match": etag } };
  expect((await service.send("GET", path, options)).status).toBe(200);
  expect((await service.send("GET", `${path}?fields=name`, options)).status).toBe(304);
});
