import { afterAll, describe, expect, test } from "bun:test";
import { TestService } from "../tests/support/service/test-service.ts";

const service = await TestService.start();
afterAll(() => service.stop());

const NOBODY = "01890000-0000-7000-8000-000000000000";

describe("creation", () => {
  test("answers 201 with the address, the tag and the body as projected", async () => {
    const body = { name: "  Ada  ", email: "ada@example.com" };
    const reply = await service.send("POST", "/customers?fields=name,status", { body });
    expect([reply.status, reply.json]).toEqual([201, { name: "  Ada  ", status: "active" }]);
    const read = await service.send("GET", reply.headers.get("location") ?? "");
    expect(read.etag).toBe(reply.etag);
    expect(read.json).toMatchObject({ name: "  Ada  " });
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
    // RFC 7240, section 2: quoted strings and parameters are no preferences, and the first of a name counts.
    ['foo="a, return=representation"', 204],
    ['foo="\\", return=representation', 204],
    ['foo="a\\", return=representation", bar', 204],
    ['foo="a, b", return=representation', 200],
    ['foo="a;b"; c="d,e", return = "repre\\sentation"', 200],
    ["foo; return=representation", 204],
    ["foo;return=minimal, return=representation", 200],
    ["foo;;, ,return=representation;", 200],
    ["return, return=representation", 204],
    ["return=, return=representation", 204],
    ["return=representation, return=minimal", 200],
    ["return=representation x", 204],
    ['return="representation', 204],
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
    [`{"name":${"[".repeat(31)}${"]".repeat(31)},"email":"a@b"}`, 422, "invalid-body"],
    [`{"name":${"[".repeat(32)}${"]".repeat(32)},"email":"a@b"}`, 400, "malformed-json"],
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
    const [status, , reply] = await send("PUT", Bun.gzipSync('{"name":"a","email":"a@b"}'), {
      "content-encoding": "gzip",
    });
    expect([status, reply.headers.get("accept-encoding")]).toEqual([415, "identity"]);
    const plain = await send("PUT", '{"name":"a","email":"a@b"}', { "content-encoding": "" });
    expect(plain[0]).toBe(204);
  });

  test("every fault is listed with its pointer, and the nearest member named", async () => {
    const [, , reply] = await send("PUT", '{"nmae":"x","email":"no"}');
    expect(reply.json.errors).toEqual([
      { pointer: "/name", detail: "is required" },
      { pointer: "/nmae", detail: "is an unknown property; did you mean `name`?" },
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
      { pointer: "/id", detail: "is not the id in the path; an id cannot be changed" },
    ]);
  });

  test.each([
    ["PUT", { id: NOBODY, name: "a" }, ["/email", "/id"]],
    ["PUT", { id: 5, name: "a" }, ["/email", "/id"]],
    ["PATCH", { id: NOBODY, nmae: "a", status: "gone" }, ["/nmae", "/status", "/id"]],
  ])("%s %j: the id is listed with the other faults", async (method, body, pointers) => {
    const { path, etag } = await service.customer();
    const { json } = await service.send(method, path, { body, headers: { "if-match": etag } });
    expect(json.errors.map(({ pointer }: { pointer: string }) => pointer).sort()).toEqual(
      pointers.toSorted(),
    );
  });
});
