import { afterAll, describe, expect, test } from "bun:test";
import { TestService } from "../tests/support/service/test-service.ts";

const service = await TestService.start();
afterAll(() => service.stop());

const NOBODY = "01890000-0000-7000-8000-000000000000";

describe("a field that the role may not read", () => {
  const support = { role: "support" };
  test("is left out of the default set silently", async () => {
    const { id, path } = await service.customer();
    expect((await service.send("GET", path, { caller: support })).json).toEqual({ id, name: "Ada" });
    const list = await service.send("GET", "/customers", { caller: support });
    expect(list.text).not.toContain("@");
  });

  test.each(["email", "EMAIL", "eMail", "id,Email", "status, email"])(
    "asked for as %p is 403",
    async (fields) => {
      const { path } = await service.customer({ email: "secret@example.com" });
      for (const at of [path, "/customers", `/customers/${NOBODY}`]) {
        const reply = await service.send("GET", `${at}?fields=${encodeURIComponent(fields)}`, {
          caller: support,
        });
        expect([reply.status, reply.json.code]).toEqual([403, "forbidden-field"]);
        expect(reply.json.forbiddenFields).toEqual(["email"]);
        expect(reply.text).not.toContain("secret");
      }
    },
  );

  test.each([
    { email: "a@b" },
    { email: "not an address" },
    { email: 1, limit: 0 },
    { fields: ["Email"] },
    { fields: " EMAIL ,id", limit: 0 },
    { fields: ["id", 1, "email"] },
  ])("can't be searched by or asked for in %j, whatever else is wrong with the body", async (body) => {
    const search = await service.send("POST", "/customers/search", { caller: support, body });
    expect([search.status, search.json.code]).toEqual([403, "forbidden-field"]);
    expect(search.json.forbiddenFields).toEqual(["email"]);
  });

  test("is not suggested", async () => {
    const typo = await service.send("GET", `/customers/${NOBODY}?fields=emial`, { caller: support });
    expect(typo.json.selectableFields).toEqual(["id", "name", "status"]);
    expect(typo.json.didYouMean).toBeUndefined();
  });
});

const clerks = await TestService.start({
  policy: `[roles.admin]
read = ["id", "name", "email", "status"]
operations = ["get", "list", "create", "replace", "patch", "delete"]
[roles.clerk]
read = ["id", "name"]
operations = ["create", "replace", "patch", "list"]
[roles.intake]
read = ["name"]
operations = ["create"]
[tenants.acme.roles.guest]
read = ["id"]
operations = ["get"]
`,
});
afterAll(() => clerks.stop());

describe("roles that write without reading everything", () => {
  const clerk = { role: "clerk" };
  const prefer = { prefer: "return=representation" };

  test("get none of it in a POST's, PUT's or PATCH's answer, and 403 where they name it", async () => {
    const body = { name: "Ada", email: "secret@example.com" };
    const made = await clerks.send("POST", "/customers", { caller: clerk, body });
    expect(Object.keys(made.json)).toEqual(["id", "name"]);
    const path = `/customers/${made.json.id}`;
    const put = await clerks.send("PUT", path, {
      caller: clerk,
      body,
      headers: { ...prefer, "if-match": made.etag },
    });
    expect([put.status, Object.keys(put.json)]).toEqual([200, ["id", "name"]]);
    const headers = { ...prefer, "if-match": put.etag };
    const patch = await clerks.send("PATCH", path, { caller: clerk, body: { email: "x@y" }, headers });
    expect([patch.status, Object.keys(patch.json)]).toEqual([200, ["id", "name"]]);
    for (const [method, target] of [
      ["POST", "/customers"],
      ["PUT", path],
      ["PATCH", path],
      ["DELETE", path],
    ] as const) {
      const reply = await clerks.send(method, `${target}?fields=name,EMAIL`, {
        caller: { role: method === "DELETE" ? "guest" : "clerk" },
        body: method === "DELETE" ? undefined : body,
        headers: { ...prefer, "if-match": patch.etag },
      });
      expect(reply.json.code).toBe(method === "DELETE" ? "forbidden-operation" : "forbidden-field");
    }
    const filtered = await clerks.send("GET", "/customers?status=active", { caller: clerk });
    expect(filtered.json.code).toBe("forbidden-field");
    expect((await clerks.send("GET", `${path}?fields=email`)).json).toEqual({ email: "x@y" });
  });

  test("learn the id of a creation from its Location, also where they may not read it", async () => {
    const body = { name: "Ada", email: "ada@example.com" };
    const made = await clerks.send("POST", "/customers", { caller: { role: "intake" }, body });
    expect(made.json).toEqual({ name: "Ada" });
    const stored = await clerks.send("GET", `${made.headers.get("location")}?fields=name`);
    expect([stored.status, stored.json]).toEqual([200, { name: "Ada" }]);
  });

  test("a tenant's own row of a role is for that tenant", async () => {
    const { path } = await clerks.customer();
    expect((await clerks.send("GET", path, { caller: { role: "guest" } })).json).toEqual({
      id: path.slice(11),
    });
    const elsewhere = await clerks.send("GET", path, { caller: { role: "guest", tenant: "other" } });
    expect(elsewhere.json.code).toBe("forbidden-operation");
  });
});

describe("another tenant's customer is the same 404 as one that never was", () => {
  const masked = (text: string) => text.replace(/"instance":"[^"]*"/, "");
  test.each(["GET", "HEAD", "PUT", "PATCH", "DELETE"])(
    "%s, with the right tag and with a wrong one",
    async (method) => {
      const { path, etag } = await service.customer();
      const other = { tenant: "other" };
      for (const ifMatch of [etag, '"AAAAAAAAAAAAAAAA"', "*"]) {
        const options = {
          caller: other,
          headers: { "if-match": ifMatch, "x-request-id": "fixed" },
          body: method === "PUT" || method === "PATCH" ? { name: "x", email: "x@y" } : undefined,
        };
        const theirs = await service.send(method, path, options);
        const nobodys = await service.send(method, `/customers/${NOBODY}`, options);
        expect(theirs.status).toBe(404);
        expect(masked(theirs.text)).toBe(masked(nobodys.text));
        const headers = ({ headers }: typeof theirs) => [...headers].filter(([name]) => name !== "date");
        expect(headers(theirs)).toEqual(headers(nobodys));
      }
      expect((await service.send("GET", path)).etag).toBe(etag);
    },
  );

  test("and in no list or search of that tenant", async () => {
    await service.customer({ email: "only@acme.example" });
    const other = { tenant: "empty" };
    expect((await service.send("GET", "/customers", { caller: other })).json).toEqual({
      items: [],
      next: null,
    });
    const search = await service.send("POST", "/customers/search", {
      caller: other,
      body: { email: "only@acme.example" },
    });
    expect(search.json.items).toEqual([]);
  });
});
