import { afterAll, describe, expect, test } from "bun:test";
import fc from "fast-check";
import { FIELD_NAMES } from "../domain/customer/field-registry.ts";
import { TestService } from "../tests/support/service/test-service.ts";

const service = await TestService.start();
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
    ["?fields=name", "unknown-parameter"],
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
