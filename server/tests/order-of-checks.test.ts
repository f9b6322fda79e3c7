import { afterAll, describe, expect, test } from "bun:test";
import { BUILT_IN_POLICY } from "../config/policy-file.ts";
import { parseRawReply, type RawReply, rawExchange } from "./support/http/raw-exchange.ts";
import { type Reply, TestService } from "./support/service/test-service.ts";

// A role that may write and not read one field: the built-in policy has none, and the order needs one.
const service = await TestService.start({
  policy: `[roles.clerk]
read = ["id", "name", "status"]
operations = ["get", "list", "create", "replace", "patch", "delete"]
${BUILT_IN_POLICY}`,
});
afterAll(() => service.stop());

const NOBODY = "01890000-0000-7000-8000-000000000000";
const STALE = '"AAAAAAAAAAAAAAAA"';
const GOOD = { name: "Grace", email: "grace@example.com" };
const bodyOf = { PUT: GOOD, PATCH: { name: "Grace" }, DELETE: undefined } as const;
type WriteMethod = keyof typeof bodyOf;
const METHODS = Object.keys(bodyOf) as WriteMethod[];

const whole = (path: string) => service.send("GET", `${path}?fields=id,name,email,status`);

/** Sends bytes that no client library sends. `lines` are header lines as they stand. */
async function raw(method: string, path: string, lines: string[], body = ""): Promise<RawReply> {
  const token = await service.token();
  const text = [
    `${method} ${path} HTTP/1.1`,
    "Host: localhost",
    `Authorization: Bearer ${token}`,
    "Connection: close",
    ...lines,
    ...(body === "" ? [] : ["Content-Type: application/json", `Content-Length: ${body.length}`]),
    "",
    body,
  ].join("\r\n");
  const reply = parseRawReply(await rawExchange(service.port, text));
  if (reply === null) throw new Error("no answer");
  return reply;
}

describe("a request that fails several checks is answered by the first", () => {
  describe.each(METHODS)("%s", (method) => {
    const bad = { body: "{", headers: { "content-type": "application/json" } };
    const query = "?nope=1";
    const steps: [string, () => Promise<Reply>, number, string][] = [
      [
        "1 the route",
        () => service.send(method, `/nowhere${query}`, { ...bad, caller: null }),
        404,
        "route-not-found",
      ],
      [
        "1 the method",
        () => service.send(method, `/customers/search${query}`, { ...bad, caller: null }),
        405,
        "method-not-allowed",
      ],
      [
        "2 the token",
        () => service.send(method, `/customers/${NOBODY}${query}`, { ...bad, caller: null }),
        401,
        "unauthenticated",
      ],
      [
        "3 the role",
        () => service.send(method, `/customers/${NOBODY}${query}`, { ...bad, caller: { role: "viewer" } }),
        403,
        "forbidden-operation",
      ],
      [
        "4 If-Match is there",
        () => service.send(method, `/customers/${NOBODY}${query}`, bad),
        428,
        "precondition-required",
      ],
      [
        "5 the parameters",
        () => service.send(method, `/customers/${NOBODY}${query}`, withIfMatch(STALE)),
        400,
        "unknown-parameter",
      ],
      [
        "5 the fields",
        () =>
          service.send(method, `/customers/${NOBODY}?fields=email,nope`, {
            ...withIfMatch(STALE),
            caller: { role: "clerk" },
          }),
        400,
        "unknown-field",
      ],
      [
        "6 the fields' rights",
        () =>
          service.send(method, `/customers/${NOBODY}?fields=EMail`, {
            ...withIfMatch(STALE),
            caller: { role: "clerk" },
          }),
        403,
        "forbidden-field",
      ],
      [
        "7 the customer",
        () => service.send(method, `/customers/${NOBODY}`, withIfMatch(STALE)),
        404,
        "customer-not-found",
      ],
      [
        "7 the customer, with an id that can't be one",
        () => service.send(method, "/customers/42", withIfMatch(STALE)),
        404,
        "customer-not-found",
      ],
      [
        "8 the version",
        async () => service.send(method, (await service.customer()).path, withIfMatch(STALE)),
        412,
        "precondition-failed",
      ],
    ];
    function withIfMatch(ifMatch: string) {
      return { body: bad.body, headers: { ...bad.headers, "if-match": ifMatch } };
    }
    test.each(steps)("%s", async (_, send, status, code) => {
      const reply = await send();
      expect([reply.status, reply.json.code]).toEqual([status, code]);
      expect(reply.headers.get("content-type")).toBe("application/problem+json");
    });
  });

  const big = "x".repeat(70_000);
  const bodies: [string, Record<string, string>, string, number, string][] = [
    ["9 the size", { "content-type": "text/plain" }, big, 413, "payload-too-large"],
    ["9 the media type", { "content-type": "text/plain" }, "{", 415, "unsupported-media-type"],
    ["9 the JSON", { "content-type": "application/json" }, '{"nope":1', 400, "malformed-json"],
    ["9 the schema", { "content-type": "application/json" }, '{"nope":1}', 422, "invalid-body"],
  ];
  test.each(bodies)("PUT: %s", async (_, headers, body, status, code) => {
    const { path, etag } = await service.customer();
    const reply = await service.send("PUT", path, { body, headers: { ...headers, "if-match": etag } });
    expect([reply.status, reply.json.code]).toEqual([status, code]);
    expect((await whole(path)).etag).toBe(etag);
    // The same body under a stale tag is 412: the version is checked before the body is judged.
    const stale = await service.send("PUT", path, { body, headers: { ...headers, "if-match": STALE } });
    expect([stale.status, stale.etag]).toEqual([412, etag]);
  });
});

describe("Content-Range, which would make a part the whole, is refused", () => {
  const send = async (method: WriteMethod, path: string, ifMatch: string, body: object, query = "") =>
    await service.send(method, `${path}${query}`, {
      headers: { "if-match": ifMatch, "content-range": "bytes 0-9/100" },
      body,
    });

  test.each(["PUT", "PATCH"] as const)("%s: 400, and nothing is changed", async (method) => {
    const { path, etag } = await service.customer();
    const reply = await send(method, path, etag, bodyOf[method]);
    expect([reply.status, reply.json.code]).toEqual([400, "malformed-request"]);
    expect(reply.json.detail).toContain("Content-Range");
    expect((await whole(path)).etag).toBe(etag);
  });

  test.each(["PUT", "PATCH"] as const)(
    "%s: after If-Match and the parameters, before the customer and the body",
    async (method) => {
      const path = `/customers/${NOBODY}`;
      expect((await send(method, path, " ", bodyOf[method])).status).toBe(428);
      expect((await send(method, path, STALE, {}, "?nope=1")).json.code).toBe("unknown-parameter");
      expect((await send(method, path, STALE, { nope: 1 })).json.code).toBe("malformed-request");
    },
  );

  test("a DELETE has no content that it could be about", async () => {
    const { path, etag } = await service.customer();
    const headers = { "if-match": etag, "content-range": "bytes 0-9/100" };
    expect((await service.send("DELETE", path, { headers })).status).toBe(204);
  });
});

describe("a write under the current entity-tag is applied and answers the new one", () => {
  test("PUT", async () => {
    const { path, etag, id } = await service.customer({ status: "suspended" });
    const reply = await service.send("PUT", path, { body: GOOD, headers: { "if-match": etag } });
    expect([reply.status, reply.text]).toEqual([204, ""]);
    expect(reply.etag).not.toBe(etag);
    const now = await whole(path);
    expect(now.json).toEqual({ id, ...GOOD, status: "suspended" });
    expect(now.etag).toBe(reply.etag);
  });

  test("PATCH", async () => {
    const { path, etag, id } = await service.customer();
    const headers = { "if-match": etag, "content-type": "application/merge-patch+json; charset=utf-8" };
    const reply = await service.send("PATCH", path, { body: '{"status":"closed"}', headers });
    expect(reply.status).toBe(204);
    const now = await whole(path);
    expect(now.json).toEqual({ id, name: "Ada", email: "ada@example.com", status: "closed" });
    expect([now.etag, now.etag === etag]).toEqual([reply.etag, false]);
  });

  test("DELETE, after which there is nothing to tag or find", async () => {
    const { path, etag } = await service.customer();
    const reply = await service.send("DELETE", path, { headers: { "if-match": etag } });
    expect([reply.status, reply.etag]).toEqual([204, ""]);
    for (const method of ["GET", "PUT", "PATCH", "DELETE"]) {
      const after = await service.send(method, path, { headers: { "if-match": etag } });
      expect(after.status).toBe(404);
    }
  });

  test("also where it changes no value", async () => {
    const { path, etag } = await service.customer(GOOD);
    const put = await service.send("PUT", path, { body: GOOD, headers: { "if-match": etag } });
    const patch = await service.send("PATCH", path, { body: {}, headers: { "if-match": put.etag } });
    expect([put.status, patch.status]).toEqual([204, 204]);
    expect(new Set([etag, put.etag, patch.etag]).size).toBe(3);
  });
});

describe("a present If-Match that is not byte-equal never writes", () => {
  const mangled: [string, (tag: string) => string[], string][] = [
    ["weak", (tag) => [`If-Match: W/${tag}`], "weak"],
    ["without quotes", (tag) => [`If-Match: ${tag.slice(1, -1)}`], "unquoted"],
    ["any", () => ["If-Match: *"], "any"],
    ["a list that begins with it", (tag) => [`If-Match: ${tag}, ${STALE}`], "list"],
    ["a list that ends with it", (tag) => [`If-Match: ${STALE}, ${tag}`], "list"],
    ["two header lines, the same twice", (tag) => [`If-Match: ${tag}`, `If-Match: ${tag}`], "list"],
    ["two header lines, it second", (tag) => [`If-Match: ${STALE}`, `if-match: ${tag}`], "list"],
    ["two blank header lines", () => ["If-Match: ", "If-Match:"], "list"],
    ["-gzip inside", (tag) => [`If-Match: ${tag.slice(0, -1)}-gzip"`], "compression-suffix"],
    ["a letter's case changed", (tag) => [`If-Match: ${swapFirstLetter(tag)}`], "case-changed"],
    ["bytes after it", (tag) => [`If-Match: ${tag}x`], "trailing-bytes"],
    ["a no-break space before it", (tag) => [`If-Match: \u00a0${tag}`], "non-ascii"],
    ["a no-break space after it", (tag) => [`If-Match: ${tag}\u00a0`], "non-ascii"],
    ["a no-break space alone", () => ["If-Match: \u00a0"], "non-ascii"],
    ["bytes that are not ASCII", (tag) => [`If-Match: ${tag.slice(0, -1)}\u00e9"`], "non-ascii"],
    ["another tag", () => [`If-Match: ${STALE}`], "stale"],
    ["not a tag at all", () => ["If-Match: 1"], "not-an-entity-tag"],
  ];
  describe.each(METHODS)("%s", (method) => {
    test.each(mangled)("%s", async (_, lines, diagnosis) => {
      const { path, etag } = await service.customer();
      const before = await whole(path);
      const body = method === "DELETE" ? "" : JSON.stringify(bodyOf[method]);
      const reply = await raw(method, path, lines(etag), body);
      expect(reply.status).toBe(412);
      expect(reply.headers.get("etag")).toBe(etag);
      const problem = JSON.parse(reply.body);
      expect([problem.code, problem.diagnosis]).toEqual(["precondition-failed", diagnosis]);
      expect(problem.detail.length).toBeGreaterThan(20);
      const after = await whole(path);
      expect([after.etag, after.json]).toEqual([before.etag, before.json]);
    });

    test.each(["", " ", "\t", " \t  \t"])("a blank one (%j) is none: 428", async (blank) => {
      const { path, etag } = await service.customer();
      const reply = await raw(method, path, [`If-Match:${blank}`], method === "DELETE" ? "" : "{}");
      expect(reply.status).toBe(428);
      expect(reply.headers.get("cache-control")).toBe("no-store");
      expect((await whole(path)).etag).toBe(etag);
    });

    test.each([" %s", "\t%s\t", "  %s \t ", "%s "])(
      "blanks around the right tag (%j) are trimmed",
      async (shape) => {
        const { path, etag } = await service.customer();
        const body = method === "DELETE" ? "" : JSON.stringify(bodyOf[method]);
        const reply = await raw(method, path, [`If-Match:${shape.replace("%s", etag)}`], body);
        expect(reply.status).toBe(204);
      },
    );
  });

  test("a former tag of the customer is stale forever", async () => {
    const { path, etag } = await service.customer();
    const past = [etag];
    for (let round = 0; round < 5; round += 1) {
      const reply = await service.send("PUT", path, {
        body: GOOD,
        headers: { "if-match": past.at(-1) ?? "" },
      });
      for (const old of past) {
        const stale = await service.send("PATCH", path, { body: {}, headers: { "if-match": old } });
        expect([stale.status, stale.etag]).toEqual([412, reply.etag]);
      }
      past.push(reply.etag);
    }
  });

  test("dates are no preconditions of a write", async () => {
    const { path, etag } = await service.customer();
    const headers = {
      "if-match": etag,
      "if-unmodified-since": "Mon, 01 Jan 1990 00:00:00 GMT",
      "if-modified-since": "Mon, 01 Jan 2990 00:00:00 GMT",
    };
    expect((await service.send("PUT", path, { body: GOOD, headers })).status).toBe(204);
  });
});

describe("If-Match of a read is compared as that of a write is", () => {
  const rows: [string, (tag: string) => string[], number][] = [
    ["absent", () => [], 200],
    ["blank", () => ["If-Match: \t"], 200],
    ["the current tag", (tag) => [`If-Match: \t${tag} `], 200],
    ["another tag", () => [`If-Match: ${STALE}`], 412],
    ["a weak tag", (tag) => [`If-Match: W/${tag}`], 412],
    ["a list with it", (tag) => [`If-Match: ${tag}, ${STALE}`], 412],
    ["any", () => ["If-Match: *"], 412],
    [
      "the current tag, and If-None-Match with it",
      (tag) => [`If-Match: ${tag}`, `If-None-Match: ${tag}`],
      304,
    ],
    [
      "another tag, and If-None-Match with the current",
      (tag) => [`If-Match: ${STALE}`, `If-None-Match: ${tag}`],
      412,
    ],
  ];
  describe.each(["GET", "HEAD"])("%s", (method) => {
    test.each(rows)("%s: %p", async (_, lines, status) => {
      const { path, etag } = await service.customer();
      const reply = await raw(method, path, lines(etag));
      expect([reply.status, reply.headers.get("etag")]).toEqual([status, etag]);
      if (status === 412 && method === "GET") {
        expect(JSON.parse(reply.body)).toMatchObject({
          code: "precondition-failed",
          receivedIfMatch: expect.any(String),
        });
      }
      expect((await raw(method, `/customers/${NOBODY}`, lines(etag))).status).toBe(404);
    });
  });
});

describe("If-None-Match of a write is compared after If-Match", () => {
  const rows: [string, (tag: string) => string[], string | null][] = [
    ["any", () => ["If-None-Match: *"], "none-match"],
    ["the current tag", (tag) => [`If-None-Match: ${tag}`], "none-match"],
    ["the current tag, weak", (tag) => [`If-None-Match: W/${tag}`], "none-match"],
    ["a list with it", (tag) => [`If-None-Match: ${STALE}, W/${tag}`], "none-match"],
    ["two lines with it", (tag) => [`If-None-Match: ${STALE}`, `If-None-Match: ${tag}`], "none-match"],
    ["another tag", () => [`If-None-Match: ${STALE}`], null],
    ["a blank", () => ["If-None-Match: \t"], null],
    ["what is no list", (tag) => [`If-None-Match: ${tag.slice(1, -1)}`], null],
  ];
  describe.each(METHODS)("%s", (method) => {
    const body = method === "DELETE" ? "" : JSON.stringify(bodyOf[method]);
    test.each(rows)("%s: %p", async (_, lines, diagnosis) => {
      const { path, etag } = await service.customer();
      const reply = await raw(method, path, [`If-Match: ${etag}`, ...lines(etag)], body);
      if (diagnosis === null) {
        expect(reply.status).toBe(204);
        return;
      }
      expect([reply.status, reply.headers.get("etag")]).toEqual([412, etag]);
      expect(JSON.parse(reply.body)).toMatchObject({ diagnosis, receivedIfNoneMatch: expect.any(String) });
      expect((await whole(path)).etag).toBe(etag);
    });

    test("a stale If-Match is named first, a missing customer before both", async () => {
      const { path, etag } = await service.customer();
      const lines = [`If-Match: ${STALE}`, "If-None-Match: *"];
      const reply = await raw(method, path, lines, body);
      expect([reply.status, reply.headers.get("etag"), JSON.parse(reply.body).diagnosis]).toEqual([
        412,
        etag,
        "stale",
      ]);
      expect((await raw(method, `/customers/${NOBODY}`, lines, body)).status).toBe(404);
    });
  });

  test("and before the body", async () => {
    const { path, etag } = await service.customer();
    const reply = await raw("PUT", path, [`If-Match: ${etag}`, "If-None-Match: *"], "{");
    expect(reply.status).toBe(412);
  });
});

describe("a stale write says where the customer already holds what it sends", () => {
  const ADA = { name: "Ada", email: "ada@example.com" };
  const readable = `read = ["id", "name", "status"]`;
  const rows: [string, WriteMethod, object | undefined, string, string][] = [
    ["the same values", "PUT", ADA, "admin", "already-stored"],
    ["the same value", "PATCH", { name: "Ada" }, "admin", "already-stored"],
    ["another value", "PUT", { ...ADA, name: "Bob" }, "admin", "stale"],
    ["one value of two", "PATCH", { name: "Ada", status: "closed" }, "admin", "stale"],
    ["no value", "PATCH", {}, "admin", "stale"],
    ["a deletion", "DELETE", undefined, "admin", "stale"],
    [`a field outside of ${readable}`, "PUT", ADA, "clerk", "stale"],
    [`a field of ${readable}`, "PATCH", { name: "Ada" }, "clerk", "already-stored"],
  ];
  test.each(rows)("%s: %s %j by %s is %s", async (_, method, body, role, diagnosis) => {
    const { path } = await service.customer(ADA);
    const reply = await service.send(method, path, {
      body,
      caller: { role },
      headers: { "if-match": STALE },
    });
    expect([reply.status, reply.json.diagnosis]).toEqual([412, diagnosis]);
  });

  test("but not to a sender of an Idempotency-Key, who would have got the first answer again", async () => {
    const { path } = await service.customer(ADA);
    const headers = { "if-match": STALE, "idempotency-key": "k" };
    expect((await service.send("PUT", path, { body: ADA, headers })).json.diagnosis).toBe("stale");
  });
});

describe("one customer has one entity-tag, wherever it is sent", () => {
  test("GET with any fields, HEAD, 304, 412, a list item, a page of a search", async () => {
    const { path, etag, id } = await service.customer({}, { tenant: "one-tag" });
    const caller = { tenant: "one-tag" };
    const tags = new Map<string, string>();
    for (const fields of ["", "?fields=id", "?fields=status,email", "?fields=NAME"]) {
      tags.set(`GET ${fields}`, (await service.send("GET", `${path}${fields}`, { caller })).etag);
      tags.set(`HEAD ${fields}`, (await service.send("HEAD", `${path}${fields}`, { caller })).etag);
    }
    const headers = { "if-none-match": etag };
    tags.set("304", (await service.send("GET", path, { caller, headers })).etag);
    tags.set("412", (await service.send("DELETE", path, { caller, headers: { "if-match": STALE } })).etag);
    const list = await service.send("GET", "/customers", { caller });
    tags.set("list", list.json.items[0].etag);
    const search = await service.send("POST", "/customers/search", {
      caller,
      body: { email: "ada@example.com" },
    });
    tags.set("search", search.json.items[0].etag);
    expect([...tags].filter(([, tag]) => tag !== etag)).toEqual([]);
    expect(list.json.items[0].customer.id).toBe(id);
  });
});

function swapFirstLetter(tag: string): string {
  return tag.replace(/[a-zA-Z]/, (letter) =>
    letter === letter.toLowerCase() ? letter.toUpperCase() : letter.toLowerCase(),
  );
}
