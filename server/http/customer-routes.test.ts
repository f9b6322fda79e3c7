import { afterAll, describe, expect, test } from "bun:test";
import fc from "fast-check";
import { FIELD_NAMES } from "../domain/field-registry.ts";
import { TestService } from "../testing/test-service.ts";

const service = new TestService();
afterAll(() => service.stop());

const NOBODY = "01890000-0000-7000-8000-000000000000";
const codeOf = async (path: string, caller = {}) => {
  const reply = await service.send("GET", path, { caller });
  return reply.json.code ?? reply.status;
};

describe("a projected body has exactly the fields asked for", () => {
  test("whatever their order, casing, blanks and repeats", async () => {
    const { id, path } = await service.customer({ status: "suspended" });
    const whole: Record<string, string> = { id, name: "Ada", email: "ada@example.com", status: "suspended" };
    const spelled = fc
      .tuple(
        fc.constantFrom(...FIELD_NAMES),
        fc.integer({ min: 0, max: 63 }),
        fc.constantFrom("", "%20", "+"),
      )
      .map(([name, upper, blank]) => ({
        name,
        text: `${blank}${[...name].map((c, at) => (upper & (1 << at) ? c.toUpperCase() : c)).join("")}${blank}`,
      }));
    await fc.assert(
      fc.asyncProperty(
        fc.array(spelled, { minLength: 1, maxLength: 16 }),
        fc.boolean(),
        async (words, isRepeated) => {
          const texts = words.map(({ text }) => text);
          const query = isRepeated
            ? texts.map((text) => `fields=${text}`).join("&")
            : `fields=${texts.join(",")}`;
          const reply = await service.send("GET", `${path}?${query}`);
          const wanted = [...new Set(words.map(({ name }) => name))];
          expect(reply.json).toEqual(Object.fromEntries(wanted.map((name) => [name, whole[name]])));
        },
      ),
      { numRuns: 150 },
    );
  });

  test("the default set is id, name and email", async () => {
    const { id, path } = await service.customer();
    expect((await service.send("GET", path)).json).toEqual({ id, name: "Ada", email: "ada@example.com" });
  });

  test("createdAt never leaves", async () => {
    const { path } = await service.customer();
    expect(await codeOf(`${path}?fields=createdAt`)).toBe("unknown-field");
    const everything = await service.send("GET", `${path}?fields=id,name,email,status`);
    expect(everything.text).not.toMatch(/created/i);
  });
});

describe("a query that is not right is refused before anything is looked up", () => {
  test.each([
    ["fields=nope", "unknown-field"],
    ["fields=", "empty-fields"],
    ["fields=name,,email", "empty-fields"],
    [`fields=${Array(17).fill("name").join()}`, "too-many-fields"],
    ["field=name", "unknown-parameter"],
    ["Fields=name", "unknown-parameter"],
    ["fields[]=name", "unknown-parameter"],
    ["__proto__=1", "unknown-parameter"],
    ["limit=1", "unknown-parameter"],
    ["fields=%zz", "unknown-field"],
    ["fields=%ff", "unknown-field"],
  ])("?%s with an id that does not exist: %s", async (query, code) => {
    expect(await codeOf(`/customers/${NOBODY}?${query}`)).toBe(code);
  });

  test("and says what is near", async () => {
    const parameter = await service.send("GET", `/customers/${NOBODY}?field=name`);
    expect(parameter.json.didYouMean).toEqual(["fields"]);
    const field = await service.send("GET", `/customers/${NOBODY}?fields=emial,id`);
    expect(field.json).toMatchObject({
      unknownFields: ["emial"],
      selectableFields: ["id", "name", "email", "status"],
      didYouMean: ["email"],
    });
  });

  test.each([
    ["limit=0", "invalid-parameter"],
    ["limit=501", "invalid-parameter"],
    ["limit=1e2", "invalid-parameter"],
    ["limit=-1", "invalid-parameter"],
    ["limit=", "invalid-parameter"],
    ["limit=1&limit=2", "invalid-parameter"],
    ["status=open", "invalid-parameter"],
    ["status=ACTIVE", "invalid-parameter"],
    ["cursor=x", "invalid-parameter"],
    ["cursor=", "invalid-parameter"],
    ["email=a@b", "unknown-parameter"],
  ])("a list with ?%s: %s", async (query, code) => {
    expect(await codeOf(`/customers?${query}`)).toBe(code);
  });
});

describe("conditional reads", () => {
  test("a matching If-None-Match is 304 with the tag and the caching headers, and no body", async () => {
    const { path, etag } = await service.customer();
    for (const value of [etag, `W/${etag}`, `"x,y" , ${etag}`, "*"]) {
      const reply = await service.send("GET", path, { headers: { "if-none-match": value } });
      expect([reply.status, reply.text, reply.etag]).toEqual([304, "", etag]);
      expect(reply.headers.get("cache-control")).toBe("private, no-cache, no-transform");
      expect(reply.headers.get("vary")).toBe("Authorization");
    }
  });

  test("any other is a full answer, and * does not make a missing customer", async () => {
    const { path } = await service.customer();
    for (const value of ['"x"', "x", " "]) {
      expect((await service.send("GET", path, { headers: { "if-none-match": value } })).status).toBe(200);
    }
    const missing = await service.send("GET", `/customers/${NOBODY}`, { headers: { "if-none-match": "*" } });
    expect(missing.status).toBe(404);
  });

  test("HEAD has the headers of GET and no body", async () => {
    const { path } = await service.customer();
    const get = await service.send("GET", `${path}?fields=name`);
    const head = await service.send("HEAD", `${path}?fields=name`);
    expect([head.status, head.text]).toEqual([200, ""]);
    for (const name of [
      "etag",
      "cache-control",
      "vary",
      "content-type",
      "content-length",
      "x-content-type-options",
    ]) {
      expect(head.headers.get(name)).toBe(get.headers.get(name) as string);
    }
    expect((await service.send("HEAD", `/customers/${NOBODY}`)).status).toBe(404);
  });

  test("an id is found in any case", async () => {
    const { path, etag } = await service.customer();
    expect((await service.send("GET", path.toUpperCase().replace("CUSTOMERS", "customers"))).etag).toBe(etag);
  });
});

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

  test("can't be searched by, and is not suggested", async () => {
    const search = await service.send("POST", "/customers/search", {
      caller: support,
      body: { email: "a@b" },
    });
    expect([search.status, search.json.code]).toEqual([403, "forbidden-field"]);
    const fields = await service.send("POST", "/customers/search", {
      caller: support,
      body: { fields: ["Email"] },
    });
    expect(fields.status).toBe(403);
    const typo = await service.send("GET", `/customers/${NOBODY}?fields=emial`, { caller: support });
    expect(typo.json.selectableFields).toEqual(["id", "name", "status"]);
    expect(typo.json.didYouMean).toBeUndefined();
  });
});

describe("roles that write without reading everything", () => {
  const clerks = new TestService({
    policy: `[roles.admin]
read = ["id", "name", "email", "status"]
operations = ["get", "list", "create", "replace", "patch", "delete"]
[roles.clerk]
read = ["id", "name"]
operations = ["create", "replace", "patch", "list"]
[tenants.acme.roles.guest]
read = ["id"]
operations = ["get"]
`,
  });
  afterAll(() => clerks.stop());
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

describe("lists", () => {
  const caller = { tenant: "lists" };
  test("pages follow by cursor and by Link, each customer once, in the order of creation", async () => {
    const made: string[] = [];
    for (let index = 0; index < 7; index += 1) {
      made.push((await service.customer({ status: index % 2 === 0 ? "active" : "closed" }, caller)).id);
    }
    const seen: string[] = [];
    let path: string | null = "/customers?limit=3&fields=id";
    while (path !== null) {
      const page: Awaited<ReturnType<typeof service.send>> = await service.send("GET", path, { caller });
      seen.push(...page.json.items.map((item: { customer: { id: string } }) => item.customer.id));
      const link: string | undefined = /^<([^>]*)>; rel="next"$/.exec(page.headers.get("link") ?? "")?.[1];
      expect(link === undefined).toBe(page.json.next === null);
      path = link ?? null;
    }
    expect(seen).toEqual(made);
    const closed = await service.send("GET", "/customers?status=closed&fields=status,id", { caller });
    expect(closed.json.items).toHaveLength(3);
  });

  test("a cursor tells no id, and opens only under its own tenant and filter", async () => {
    const page = await service.send("GET", "/customers?limit=1", { caller });
    const cursor: string = page.json.next;
    const id: string = page.json.items[0].customer.id;
    expect(Buffer.from(cursor, "base64url").toString("hex")).not.toContain(id.replaceAll("-", ""));
    const refused = [
      ["/customers?status=active", caller],
      ["/customers?", { tenant: "other" }],
    ] as const;
    for (const [path, who] of refused) {
      const reply = await service.send("GET", `${path}&cursor=${cursor}`, { caller: who });
      expect(reply.json.code).toBe("invalid-parameter");
    }
    const flipped = `${cursor[0] === "A" ? "B" : "A"}${cursor.slice(1)}`;
    expect((await service.send("GET", `/customers?cursor=${flipped}`, { caller })).status).toBe(400);
  });

  test.each([
    ["fields=nmae", "unknown-field"],
    ["fields=", "empty-fields"],
  ])("a search by ?%s is refused for its query (%s), whatever its body is", async (query, code) => {
    const reply = await service.send("POST", `/customers/search?${query}`, { body: "{" });
    expect([reply.status, reply.json.code]).toEqual([400, code]);
  });

  test("a search takes its filter from the body, pages by cursor, and puts no personal data into an address", async () => {
    const twins = { tenant: "twins" };
    for (let index = 0; index < 3; index += 1) await service.customer({ email: "twin@example.com" }, twins);
    const body = { email: "twin@example.com", fields: "id, EMAIL", limit: 2 };
    const first = await service.send("POST", "/customers/search", { caller: twins, body });
    expect(first.json.items).toHaveLength(2);
    expect(Object.keys(first.json.items[0].customer)).toEqual(["id", "email"]);
    expect(first.headers.get("link")).toBeNull();
    const second = await service.send("POST", "/customers/search", {
      caller: twins,
      body: { ...body, cursor: first.json.next },
    });
    expect([second.json.items.length, second.json.next]).toEqual([1, null]);
    const lower = await service.send("POST", "/customers/search", {
      caller: twins,
      body: { email: "TWIN@example.com" },
    });
    expect(lower.json.items).toEqual([]);
  });
});

describe("creation", () => {
  test("answers 201 with the address, the tag and the body as projected", async () => {
    const body = { name: "  Ada  ", email: "ada@example.com" };
    const reply = await service.send("POST", "/customers?fields=name,status", { body });
    expect([reply.status, reply.json]).toEqual([201, { name: "Ada", status: "active" }]);
    const read = await service.send("GET", reply.headers.get("location") ?? "");
    expect(read.etag).toBe(reply.etag);
    expect(read.json).toMatchObject({ name: "Ada" });
  });

  test("with a repeated Idempotency-Key answers the first 201 again, even when the customer has changed since", async () => {
    const body = { name: "Once", email: "once@example.com" };
    const headers = { "idempotency-key": "key-1" };
    const first = await service.send("POST", "/customers", { body, headers });
    const path = first.headers.get("location") ?? "";
    await service.send("PUT", path, {
      body: { name: "Twice", email: "x@y" },
      headers: { "if-match": first.etag },
    });
    const again = await service.send("POST", "/customers", { body, headers });
    expect([again.status, again.text, again.etag]).toEqual([201, first.text, first.etag]);
    expect(again.headers.get("location")).toBe(path);
    expect([first.headers.get("idempotency-replayed"), again.headers.get("idempotency-replayed")]).toEqual([
      null,
      "true",
    ]);
    const other = await service.send("POST", "/customers", { body: { ...body, status: "closed" }, headers });
    expect([other.status, other.json.code]).toEqual([422, "idempotency-key-reused"]);
  });

  test.each(["", "a b", "ü", "x".repeat(256)])("with the Idempotency-Key %p is refused", async (key) => {
    const reply = await service.send("POST", "/customers", {
      body: { name: "A", email: "a@b" },
      headers: { "idempotency-key": key },
    });
    expect(reply.json.code).toBe("invalid-idempotency-key");
  });
});

describe("Prefer: return=representation", () => {
  test.each([
    ["return=representation", 200],
    ['RETURN="representation"', 200],
    ["respond-async, return=representation; x=1", 200],
    ["return=minimal", 204],
    ["return=minimal, return=representation", 204],
    ["handling=strict", 204],
    ["xreturn=representation", 204],
  ])("%s: %d", async (prefer, status) => {
    const { id, path, etag } = await service.customer();
    const reply = await service.send("PATCH", `${path}?fields=id,status`, {
      body: { status: "closed" },
      headers: { prefer, "if-match": etag },
    });
    expect(reply.status).toBe(status);
    expect(reply.json).toEqual(status === 200 ? { id, status: "closed" } : undefined);
    expect(reply.headers.get("preference-applied")).toBe(status === 200 ? "return=representation" : null);
    expect((await service.send("GET", path)).etag).toBe(reply.etag);
  });
});

describe("bodies", () => {
  const send = async (method: string, body: string | Uint8Array, headers: Record<string, string> = {}) => {
    const { path, etag } = await service.customer();
    const reply = await service.send(method, path, {
      body,
      headers: { "content-type": "application/json", "if-match": etag, ...headers },
    });
    expect((await service.send("GET", path)).etag === etag).toBe(reply.status >= 400);
    return [reply.status, reply.json?.code ?? null, reply] as const;
  };

  test.each([
    ["", 400, "malformed-json"],
    ["{", 400, "malformed-json"],
    ['\ufeff{"name":"a","email":"a@b"}', 400, "malformed-json"],
    ['{"name":"a","email":"a@b","name":"b"}', 400, "malformed-json"],
    [new Uint8Array([0x22, 0xff, 0x22]), 400, "malformed-json"],
    ["[]", 422, "invalid-body"],
    ["null", 422, "invalid-body"],
    ['"x"', 422, "invalid-body"],
    ["{}", 422, "invalid-body"],
    ['{"name":"a"}', 422, "invalid-body"],
    ['{"name":1,"email":"a@b"}', 422, "invalid-body"],
    ['{"name":"a","email":"a@b","__proto__":{"x":1}}', 422, "invalid-body"],
    ['{"name":"a","email":"a@b","status":"active"}', 422, "invalid-body"],
    ['{"name":"\\u0000","email":"a@b"}', 422, "invalid-body"],
    ['{"name":"\\ud800","email":"a@b"}', 422, "invalid-body"],
    [`{"name":"${"[".repeat(60_000)}`, 400, "malformed-json"],
    [`{"name":${"[".repeat(20_000)}${"]".repeat(20_000)},"email":"a@b"}`, 422, "invalid-body"],
    [`"${"x".repeat(65_535)}"`, 413, "payload-too-large"],
  ])("PUT %#: %d %s", async (body, status, code) => {
    const [got, problem] = await send("PUT", body as string);
    expect([got, problem]).toEqual([status, code]);
  });

  test("a body of exactly 64 KiB is read", async () => {
    const padding = " ".repeat(65_536 - 29);
    const [status] = await send("PUT", `{"name":"ab","email":"a@b.c"}${padding}`);
    expect(status).toBe(204);
  });

  test("a body that comes in chunks is held to the same size", async () => {
    const { path, etag } = await service.customer();
    const chunk = new TextEncoder().encode(" ".repeat(10_000));
    const chunks = (count: number, last: string) =>
      new ReadableStream({
        async start(controller) {
          for (let index = 0; index < count; index += 1) controller.enqueue(chunk);
          controller.enqueue(new TextEncoder().encode(last));
          controller.close();
        },
      });
    const put = async (body: ReadableStream) =>
      fetch(`${service.url}${path}`, {
        method: "PUT",
        headers: {
          authorization: `Bearer ${await service.token()}`,
          "content-type": "application/json",
          "if-match": etag,
        },
        body,
      });
    expect((await put(chunks(7, ""))).status).toBe(413);
    expect((await put(chunks(6, '{"name":"a","email":"a@b"}'))).status).toBe(204);
  });

  test.each([
    ["PUT", "text/plain", 415],
    ["PUT", "application/merge-patch+json", 415],
    ["PUT", "application/x-www-form-urlencoded", 415],
    ["PUT", "application/jsonx", 415],
    ["PUT", "application/json, text/plain", 415],
    ["PUT", "Application/JSON ; charset=utf-8", 204],
    ["PATCH", "application/merge-patch+json", 204],
    ["PATCH", "application/json", 204],
    ["PATCH", "application/json-patch+json", 415],
  ])("%s as %s: %d", async (method, type, status) => {
    const [got, , reply] = await send(method, '{"name":"a","email":"a@b"}', { "content-type": type });
    expect(got).toBe(status);
    expect(reply.headers.get("accept-patch")).toBe(
      status === 415 && method === "PATCH" ? "application/merge-patch+json, application/json" : null,
    );
  });

  test("without Content-Type, or compressed: 415", async () => {
    const { path, etag } = await service.customer();
    const token = await service.token();
    const body = new Blob(['{"name":"a","email":"a@b"}']);
    const headers = { authorization: `Bearer ${token}`, "if-match": etag };
    expect((await fetch(`${service.url}${path}`, { method: "PUT", headers, body })).status).toBe(415);
    const [status] = await send("PUT", Bun.gzipSync('{"name":"a","email":"a@b"}'), {
      "content-encoding": "gzip",
    });
    expect(status).toBe(415);
  });

  test("every fault is listed with its pointer, and the nearest member named", async () => {
    const [, , reply] = await send("PUT", '{"nmae":"x","email":"no"}');
    expect(reply.json.errors).toEqual([
      { pointer: "/name", detail: "is required" },
      { pointer: "/nmae", detail: "is not a member that this takes; did you mean `name`?" },
      { pointer: "/email", detail: "must have 3 to 254 characters; it has 2" },
    ]);
  });

  test("id is tolerated where it is the path's, in any case, and refused where it is not", async () => {
    const { id, path, etag } = await service.customer();
    const body = { id: id.toUpperCase(), name: "a", email: "a@b" };
    const put = await service.send("PUT", path, { body, headers: { "if-match": etag } });
    expect(put.status).toBe(204);
    const other = await service.send("PATCH", path, {
      body: { id: NOBODY },
      headers: { "if-match": put.etag },
    });
    expect(other.json.errors).toEqual([
      { pointer: "/id", detail: "is not the id in the path; an id can't be changed" },
    ]);
  });
});
