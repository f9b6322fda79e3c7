import { afterAll, describe, expect, test } from "bun:test";
import { PROBLEMS } from "../domain/problem.ts";
import { parseRawReply, rawExchange } from "../tests/support/http/raw-exchange.ts";
import { TestService } from "../tests/support/service/test-service.ts";

const service = await TestService.start();
afterAll(() => service.stop());

const ID = "01890000-0000-7000-8000-000000000000";
const ALLOW = {
  "/customers": "GET, HEAD, POST, OPTIONS",
  "/customers/search": "POST, OPTIONS",
  [`/customers/${ID}`]: "GET, HEAD, PUT, PATCH, DELETE, OPTIONS",
  [`/customers/${ID}/history`]: "GET, HEAD, OPTIONS",
  "/metrics": "GET, HEAD, OPTIONS",
  "/healthz": "GET, HEAD, OPTIONS",
  "/readyz": "GET, HEAD, OPTIONS",
  "/problems/invalid-body": "GET, HEAD, OPTIONS",
};

describe.each(Object.entries(ALLOW))("%s", (path, allow) => {
  test("every other method is 405 with Allow, also without a token", async () => {
    for (const method of ["GET", "POST", "PUT", "PATCH", "DELETE", "PROPFIND"]) {
      if (allow.split(", ").includes(method)) continue;
      const reply = await service.send(method, path, { caller: null });
      expect([method, reply.status, reply.json.code]).toEqual([method, 405, "method-not-allowed"]);
      expect(reply.headers.get("allow")).toBe(allow);
    }
  });

  test("OPTIONS answers the same list to anyone who may ask", async () => {
    const isMetrics = path === "/metrics";
    const reply = await service.send("OPTIONS", path, { caller: isMetrics ? { role: "monitor" } : {} });
    expect([reply.status, reply.headers.get("allow"), reply.text]).toEqual([204, allow, ""]);
    expect(reply.headers.get("accept-patch")).toBe(
      allow.includes("PATCH") ? "application/merge-patch+json, application/json" : null,
    );
    const isOpen = /health|ready|problem/.test(path);
    expect((await service.send("OPTIONS", path, { caller: null })).status).toBe(isOpen ? 204 : 401);
  });
});

describe("addresses that are none are 404 with a problem document, also without a token", () => {
  test.each([
    "/customers/",
    `/customers/${ID}/`,
    `/customers/${ID}/x`,
    "/Customers",
    "/favicon.ico",
    "/problems/nope",
    "/metrics/",
  ])("%s", async (path) => {
    const reply = await service.send("GET", path, { caller: null });
    expect([reply.status, reply.json.code]).toEqual([404, "route-not-found"]);
  });
});

describe("requests that try to get round the routes", () => {
  const send = async (target: string, host = "localhost") => {
    const token = await service.token();
    const text = `GET ${target} HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${token}\r\nConnection: close\r\n\r\n`;
    const reply = parseRawReply(await rawExchange(service.port, text));
    return [reply?.status, reply?.body === "" ? null : (JSON.parse(reply?.body ?? "null")?.code ?? null)];
  };

  test("a Host of one character shifts no path", async () => {
    const { path } = await service.customer();
    for (const host of ["x", "ab", "a.b", "localhost"]) {
      expect(await send(path, host)).toEqual([200, null]);
      expect(await send(`/zz${path}`, host)).toEqual([404, "route-not-found"]);
      expect(await send(`/${path}`, host)).toEqual([404, "route-not-found"]);
    }
  });

  test.each(["a b", "evil/zz", ""])("an unusable Host (%j) is 400", async (host) => {
    const { path } = await service.customer();
    expect(await send(path, host)).toEqual([400, "malformed-request"]);
  });

  test.each([
    "%zz",
    "%",
    "%FF",
    "%00",
    "..%2f",
    "%2e%2e",
    "a%2Fb",
    `${ID}%20`,
    `urn:uuid:${ID}`,
    ID.replaceAll("-", ""),
  ])("the id %s is one that no customer has", async (id) => {
    const [status, code] = await send(`/customers/${id}`);
    expect([status, /not-found$/.test(String(code))]).toEqual([404, true]);
  });
});

describe("headers of every answer", () => {
  test("a usable X-Request-Id comes back, any other is replaced by a new UUID, which is the instance", async () => {
    const given = await service.send("GET", "/nope", { headers: { "x-request-id": "abc.DEF_1-2" } });
    expect(given.headers.get("x-request-id")).toBe("abc.DEF_1-2");
    expect(given.json.instance).toMatch(/^urn:uuid:[0-9a-f-]{36}$/);
    for (const id of ["a b", "x".repeat(65), "a@b", "<>"]) {
      const reply = await service.send("GET", "/nope", { headers: { "x-request-id": id } });
      expect(reply.json.instance).toBe(`urn:uuid:${reply.headers.get("x-request-id")}`);
    }
  });

  test("each problem has an instance of its own, also where a caller repeats a request id that is a UUID", async () => {
    const headers = { "x-request-id": "0b8f7c1e-7a55-4c0f-9a0e-5d6f1c2b3a49" };
    const first = await service.send("GET", "/nope", { headers });
    const second = await service.send("GET", "/nope", { headers });
    expect(first.headers.get("x-request-id")).toBe(headers["x-request-id"]);
    expect(first.json.instance).not.toBe(second.json.instance);
  });

  test("customer answers may be cached by nobody else and changed by no proxy; problems are never stored", async () => {
    const { path, etag } = await service.customer();
    const customers = [
      await service.send("GET", path),
      await service.send("GET", "/customers?limit=1"),
      await service.send("POST", "/customers", { body: { name: "A", email: "a@b" } }),
      await service.send("PUT", path, { body: { name: "A", email: "a@b" }, headers: { "if-match": etag } }),
    ];
    for (const { headers } of customers) {
      expect(headers.get("cache-control")).toBe("private, no-cache, no-transform");
      expect(headers.get("vary")).toBe("Authorization");
      expect(headers.get("x-content-type-options")).toBe("nosniff");
    }
    const problem = await service.send("DELETE", path);
    expect([problem.status, problem.headers.get("cache-control")]).toEqual([428, "no-store"]);
    expect(problem.headers.get("x-content-type-options")).toBe("nosniff");
  });

  test.each([
    ["GET", "Connection: close", ["close"]],
    ["POST", "Connection: Close", ["close"]],
    ["HEAD", "Connection: x, close", ["close"]],
    ["OPTIONS", "Connection: keep-alive, close", ["close"]],
  ])("%s with %s: the reply says close too, once, and has one Date", async (method, line, expected) => {
    const text = await rawExchange(
      service.port,
      `${method} /healthz HTTP/1.1\r\nHost: localhost\r\n${line}\r\nContent-Length: 0\r\n\r\n`,
    );
    const values = (name: RegExp) => [...text.matchAll(name)].map(([, value]) => value);
    expect(values(/^connection: (.*)\r$/gim)).toEqual(expected);
    const dates = values(/^date: (.*)\r$/gim);
    expect(dates).toHaveLength(1);
    expect(new Date(dates[0] ?? "").toUTCString()).toBe(dates[0] ?? "");
  });

  test("a connection that stays open is not said to close", async () => {
    for (const method of ["GET", "HEAD"]) {
      const reply = await service.send(method, "/healthz", {
        headers: { connection: "keep-alive, x-close" },
      });
      expect(reply.headers.get("connection")).not.toBe("close");
    }
  });

  test("content is never compressed", async () => {
    const reply = await service.send("GET", "/customers", {
      headers: { "accept-encoding": "gzip, br, deflate" },
    });
    expect(reply.headers.get("content-encoding")).toBeNull();
  });
});

describe("authentication", () => {
  const INVALID = 'Bearer error="invalid_token"';
  test.each([
    [{}, "Bearer"],
    [{ authorization: "" }, "Bearer"],
    [{ authorization: "Bearer" }, "Bearer"],
    [{ authorization: "Basic YTpi" }, "Bearer"],
    [{ authorization: "Bearer nope" }, INVALID],
    [{ authorization: `Bearer cst_${"A".repeat(40)}` }, INVALID],
  ])("%j is 401 with WWW-Authenticate: %s (RFC 6750, section 3.1)", async (headers, challenge) => {
    for (const path of ["/customers", "/metrics"]) {
      const reply = await service.send("GET", path, { caller: null, headers });
      expect([reply.status, reply.json.code]).toEqual([401, "unauthenticated"]);
      expect(reply.headers.get("www-authenticate")).toBe(challenge);
    }
  });

  test("the scheme is matched without regard to case; two tokens are none", async () => {
    const token = await service.token();
    const send = (authorization: string) =>
      service.send("GET", "/customers", { caller: null, headers: { authorization } });
    expect((await send(`bearer ${token}`)).status).toBe(200);
    expect((await send(`Bearer ${token}, Bearer ${token}`)).status).toBe(401);
  });

  test("a token without a tenant reads metrics and nothing else; a tenant's token reads no metrics", async () => {
    const monitor = { role: "monitor" };
    expect((await service.send("GET", "/metrics", { caller: monitor })).status).toBe(200);
    expect((await service.send("GET", "/customers", { caller: monitor })).json.code).toBe(
      "forbidden-operation",
    );
    expect((await service.send("GET", "/metrics")).json.code).toBe("forbidden-operation");
    expect((await service.send("GET", "/metrics", { caller: null })).status).toBe(401);
  });
});

describe("health", () => {
  test.each(["", "?", "?x=1", "?t=1&t=2", "?%zz"])(
    "is public and says nothing else, with any query: %j",
    async (query) => {
      const send = (path: string) => service.send("GET", `${path}${query}`, { caller: null });
      expect((await send("/healthz")).json).toEqual({ status: "ok" });
      expect((await send("/readyz")).json).toEqual({ status: "ready" });
    },
  );
});

test("OPTIONS / is readiness, as plain health checks of load balancers ask for it", async () => {
  const reply = await service.send("OPTIONS", "/", { caller: null });
  expect([reply.status, reply.json]).toEqual([200, { status: "ready" }]);
});

describe("the index", () => {
  test("a program gets links that all lead somewhere; a browser gets a page with the same", async () => {
    const { json } = await service.send("GET", "/", { caller: null });
    const links = Object.values<string>(json.links);
    expect(links.length).toBeGreaterThan(3);
    for (const link of links) expect((await service.send("GET", link)).status).toBe(200);
    const page = await service.send("GET", "/", { caller: null, headers: { accept: "text/html" } });
    for (const link of links.slice(1)) expect(page.text).toContain(`href="${link}"`);
  });
});

describe("problem pages", () => {
  test("/problems lists every problem, each with an example, to programs and to people", async () => {
    const { json } = await service.send("GET", "/problems", { caller: null });
    const codes = json.problems.map(({ code }: { code: string }) => code);
    expect(codes).toEqual(Object.keys(PROBLEMS));
    for (const { code, example } of json.problems) expect(example.code).toBe(code);
    const { text } = await service.send("GET", "/problems", {
      caller: null,
      headers: { accept: "text/html" },
    });
    for (const code of codes) expect(text).toContain(`href="/problems/${code}"`);
  });

  test.each(Object.keys(PROBLEMS))(
    "/problems/%s says what it means, to programs and to people",
    async (code) => {
      const send = (accept: string) =>
        service.send("GET", `/problems/${code}`, { caller: null, headers: { accept } });
      const { status } = PROBLEMS[code as keyof typeof PROBLEMS];
      expect((await send("*/*")).json).toMatchObject({ code, status });
      expect((await send("text/html")).text).toContain(`<code>${code}</code>`);
    },
  );

  const JSON_TYPE = "application/json";
  const HTML_TYPE = "text/html; charset=utf-8";
  test.each([
    ["text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", HTML_TYPE],
    ["text/html", HTML_TYPE],
    ["TEXT/HTML;charset=utf-8", HTML_TYPE],
    ["text/*", HTML_TYPE],
    ["application/json;q=0.5, text/html;q=0.6", HTML_TYPE],
    ["*/*;q=0.1, text/html", HTML_TYPE],
    ["application/*;q=0.2, text/*;q=0.3", HTML_TYPE],
    ["application/json;q=0, */*", HTML_TYPE],
    ["text/html;q=0.5, application/json;q=0.6", JSON_TYPE],
    ["text/html, application/json", JSON_TYPE],
    ["text/html;q=0, */*;q=0.1", JSON_TYPE],
    ["text/html;q=0", JSON_TYPE],
    ["text/html;q=nonsense, application/json;q=0.1", JSON_TYPE],
    ["application/*", JSON_TYPE],
    ["*/*", JSON_TYPE],
    ["image/png", JSON_TYPE],
    ["", JSON_TYPE],
  ])("Accept: %s is answered with %s (RFC 9110, section 12.5.1)", async (accept, type) => {
    const reply = await service.send("GET", "/problems/invalid-body", { caller: null, headers: { accept } });
    expect([reply.status, reply.headers.get("content-type")]).toEqual([200, type]);
    expect(reply.headers.get("vary")).toContain("Accept");
  });
});

test.each(["/problems/invalid-body?x=1", "/metrics?x=1"])(
  "%s: a parameter that the route does not know is refused",
  async (path) => {
    const reply = await service.send("GET", path, { caller: { role: "monitor" } });
    expect([reply.status, reply.json.code]).toEqual([400, "unknown-parameter"]);
  },
);

const origin = "https://app.example.com";
const open = await TestService.start({ corsOrigins: [origin], corsHeaders: ["traceparent"] });
afterAll(() => open.stop());

describe("CORS", () => {
  const preflight = {
    origin,
    "access-control-request-method": "PUT",
    "access-control-request-headers": "if-match",
  };

  test("a preflight of a configured origin is answered before authentication", async () => {
    const reply = await open.send("OPTIONS", `/customers/${ID}`, { caller: null, headers: preflight });
    expect(reply.status).toBe(204);
    expect(reply.headers.get("access-control-allow-origin")).toBe(origin);
    expect(reply.headers.get("access-control-allow-methods")).toContain("PUT");
    expect(reply.headers.get("access-control-allow-headers")).toBe(
      "Authorization, Content-Type, If-Match, If-None-Match, Prefer, Idempotency-Key, X-Request-Id, traceparent",
    );
  });

  test("whatever it replies, a page may read every header of it", async () => {
    const safelisted = /^(?:cache-control|content-(?:language|length|type)|expires|last-modified|pragma)$/;
    const { path, etag } = await open.customer();
    const send = (method: string, at: string, headers: Record<string, string> = {}, body?: unknown) =>
      open.send(method, at, { headers: { origin, ...headers }, body });
    const key = { "idempotency-key": "k" };
    const replies = [
      await send("GET", path),
      await send("GET", path, { "if-none-match": "*" }),
      await send("GET", "/customers?limit=1"),
      await send("GET", "/nowhere"),
      await send("GET", "/problems/invalid-body"),
      await send("OPTIONS", path),
      await send("PROPFIND", path),
      await send("POST", "/customers", key, { name: "A", email: "a@b.example" }),
      await send("POST", "/customers", key, { name: "A", email: "a@b.example" }),
      await send("PATCH", path, { "if-match": etag, "content-type": "text/plain" }, "x"),
      await send(
        "PUT",
        path,
        { "if-match": etag, "content-type": "application/json", "content-encoding": "br" },
        "x",
      ),
      await send("PUT", path, { "if-match": "x" }, {}),
      await send(
        "PUT",
        path,
        { "if-match": etag, prefer: "return=representation" },
        { name: "A", email: "a@b.example" },
      ),
      await open.send("GET", "/customers", { headers: { origin }, caller: null }),
    ];
    expect(replies.map(({ status }) => status)).toEqual([
      200, 304, 200, 404, 200, 204, 405, 201, 201, 415, 415, 412, 200, 401,
    ]);
    for (const { headers } of replies) {
      expect(headers.get("access-control-allow-origin")).toBe(origin);
      expect(headers.get("vary")).toMatch(/Origin$/);
      const exposed = headers.get("access-control-expose-headers")?.toLowerCase().split(", ") ?? [];
      const hidden = [...headers.keys()].filter(
        (name) => !exposed.includes(name) && !safelisted.test(name) && !name.startsWith("access-control-"),
      );
      expect(hidden.filter((name) => name !== "connection")).toEqual([]);
    }
    // What only a rollout or a store that fails sends.
    for (const name of ["Precondition-Enforced-From", "Retry-After"]) {
      expect(replies[0]?.headers.get("access-control-expose-headers")).toContain(name);
    }
  });

  test("another origin gets no permission, and a service without origins gives none", async () => {
    const other = { ...preflight, origin: "https://evil.example" };
    const reply = await open.send("OPTIONS", "/customers", { caller: null, headers: other });
    expect(reply.headers.get("access-control-allow-origin")).toBeNull();
    const off = await service.send("OPTIONS", "/customers", { caller: null, headers: preflight });
    expect([off.status, off.headers.get("access-control-allow-origin")]).toEqual([401, null]);
    expect((await service.send("GET", "/customers", { headers: { origin } })).headers.get("vary")).toBe(
      "Authorization",
    );
  });
});

test("PUBLIC_URL is the base of Location, Link and problem types", async () => {
  const base = "https://api.example.com/crm";
  const behind = await TestService.start({ publicUrl: base });
  try {
    const made = await behind.send("POST", "/customers", { body: { name: "A", email: "a@b" } });
    expect(made.headers.get("location")).toStartWith(`${base}/customers/`);
    await behind.customer();
    const list = await behind.send("GET", "/customers?limit=1");
    expect(list.headers.get("link")).toStartWith(`<${base}/customers?limit=1&cursor=`);
    expect((await behind.send("GET", "/nope")).json.type).toBe(`${base}/problems/route-not-found`);
  } finally {
    await behind.stop();
  }
});
