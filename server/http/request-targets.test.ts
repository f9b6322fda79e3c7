import { afterAll, describe, expect, test } from "bun:test";
import { parseRawReply, rawExchange } from "../tests/support/http/raw-exchange.ts";
import { TestService } from "../tests/support/service/test-service.ts";

/** Anyone may read its metrics: what a proxy hides by path is what these spellings try to reach. */
const service = await TestService.start({ metricsArePublic: true });
afterAll(() => service.stop());

const ID = "01890000-0000-7000-8000-000000000000";

/** @returns status and problem code; a bare answer has none, and 0 is no answer at all */
async function send(line: string, lines: readonly string[] = ["Host: localhost"]): Promise<string> {
  const authorization = `Authorization: Bearer ${await service.token()}`;
  const head = [line, ...lines, authorization, "Connection: close", "", ""].join("\r\n");
  const reply = parseRawReply(await rawExchange(service.port, head));
  if (reply === null) return "0";
  const isProblem = reply.body !== "" && reply.headers.get("content-type") === "application/problem+json";
  return isProblem
    ? `${reply.status} ${(JSON.parse(reply.body) as { code: string }).code}`
    : `${reply.status}`;
}

describe("a path is routed as it was sent, so that a proxy which reads it otherwise hides what it means to hide", () => {
  test.each([
    ["/metrics", "200"],
    ["/metrics?", "200"],
    ["http://localhost/metrics", "200"],
    ["HTTP://other.example/metrics", "200"],
    ["http:///metrics", "200"],
    ["http://user@[/metrics", "200"],
    // RFC 3986, section 6.2.2: other spellings of one address, which we do not take for it.
    ["/x/../metrics", "404 route-not-found"],
    ["/./metrics", "404 route-not-found"],
    ["/metrics/.", "404 route-not-found"],
    ["/metrics/..", "404 route-not-found"],
    ["/x/%2e%2e/metrics", "404 route-not-found"],
    ["/x/.%2E/metrics", "404 route-not-found"],
    ["/%2e/metrics", "404 route-not-found"],
    ["http://localhost/x/../metrics", "404 route-not-found"],
    ["/m%65trics", "404 route-not-found"],
    ["//metrics", "404 route-not-found"],
    ["//localhost/metrics", "404 route-not-found"],
    ["/metrics/", "404 route-not-found"],
    ["/metrics;x=1", "404 route-not-found"],
    ["/metrics#x", "404 route-not-found"],
    ["/metrics%00", "404 route-not-found"],
    ["/metrics%20", "404 route-not-found"],
    ["/metrics%3f", "404 route-not-found"],
    ["/%2fmetrics", "404 route-not-found"],
    ["/x%2f..%2fmetrics", "404 route-not-found"],
    ["/%c0%afmetrics", "404 route-not-found"],
    ["/\xc0\xafmetrics", "404 route-not-found"],
    ["/METRICS", "404 route-not-found"],
    // WHATWG's URL parser reads a backslash as a slash.
    ["/\\metrics", "404 route-not-found"],
    ["/x\\..\\metrics", "404 route-not-found"],
    ["/x/..\\metrics", "404 route-not-found"],
    ["/%5cmetrics", "404 route-not-found"],
    ["/x%5c..%5cmetrics", "404 route-not-found"],
    ["\\metrics", "400"],
    ["metrics", "400"],
    ["ftp://localhost/metrics", "400"],
    ["*", "400"],
    // The id is the path's last segment, percent-decoded; no customer has one of these.
    ["/customers/..", "404 customer-not-found"],
    ["/customers/%2e%2e", "404 customer-not-found"],
    ["/customers/..%2fmetrics", "404 customer-not-found"],
    ["/customers/..\\metrics", "404 customer-not-found"],
    ["/customers/x%2fy", "404 customer-not-found"],
    [`/customers/${ID}%00`, "404 customer-not-found"],
    [`/customers/${ID}%2f`, "404 customer-not-found"],
    [`/customers/./${ID}`, "404 route-not-found"],
    [`/customers//${ID}`, "404 route-not-found"],
    ["/problems/..%2fmetrics", "404 route-not-found"],
    ["/problems/\\..\\metrics", "404 route-not-found"],
  ])("GET %s: %s", async (target, expected) => {
    expect(await send(`GET ${target} HTTP/1.1`)).toBe(expected);
  });

  test("a path of 10,000 characters is no other", async () => {
    expect(await send(`GET /${"x/../".repeat(2_000)}metrics HTTP/1.1`)).toBe("404 route-not-found");
  });

  test("every method is routed by the same spelling", async () => {
    for (const method of ["HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]) {
      expect([method, await send(`${method} /x\\..\\customers HTTP/1.1`)]).toEqual([
        method,
        method === "HEAD" ? "404" : "404 route-not-found",
      ]);
    }
  });

  test("an id may be percent-encoded, as any part of an address may", async () => {
    const { path } = await service.customer();
    const encoded = path.replace("/customers/0", "/customers/%30");
    expect(await send(`GET ${encoded} HTTP/1.1`)).toBe("200");
  });
});

describe("Host (RFC 9112, section 3.2)", () => {
  test.each([
    ["HTTP/1.1", ["Host: localhost"], "200"],
    ["HTTP/1.1", ["Host: localhost:8080"], "200"],
    ["HTTP/1.1", ["Host: [::1]:8080"], "200"],
    ["HTTP/1.1", ["Host: x"], "200"],
    ["HTTP/1.1", [], "400"],
    ["HTTP/1.1", ["Host: a", "Host: a"], "400 malformed-request"],
    ["HTTP/1.1", ["Host: a", "Host: b"], "400 malformed-request"],
    ["HTTP/1.1", ["Host: a, b"], "400 malformed-request"],
    ["HTTP/1.1", ["Host: a b"], "400 malformed-request"],
    ["HTTP/1.1", ["Host: evil/zz"], "400 malformed-request"],
    ["HTTP/1.1", ["Host:"], "400 malformed-request"],
    ["HTTP/1.1", ["Host: a:"], "200"],
    ["HTTP/1.1", ["Host: a%20_~!$&'()*+;=-.b"], "200"],
    ["HTTP/1.1", ["Host: a:80:80"], "400 malformed-request"],
    ["HTTP/1.1", ["Host: a:http"], "400 malformed-request"],
    ["HTTP/1.1", ["Host: :80"], "400 malformed-request"],
    ["HTTP/1.1", ["Host: [::1"], "400 malformed-request"],
    ["HTTP/1.1", ["Host: ::1"], "400 malformed-request"],
    ["HTTP/1.1", ["Host: a]"], "400 malformed-request"],
    ["HTTP/1.1", ["Host: a|b"], "400 malformed-request"],
    ["HTTP/1.0", ["Host: localhost"], "200"],
    // HAProxy's plain `option httpchk` sends this.
    ["HTTP/1.0", [], "200"],
    ["HTTP/1.0", ["Host: a b"], "400 malformed-request"],
  ])("%s %j: %s", async (version, lines, expected) => {
    const { path } = await service.customer();
    for (const target of ["/readyz", path])
      expect(await send(`GET ${target} ${version}`, lines)).toBe(expected);
    if (lines.length === 0) return;
    // Nothing about it shifts where the path begins.
    expect(await send(`GET /zz/metrics ${version}`, lines)).toBe(
      expected === "200" ? "404 route-not-found" : expected,
    );
  });
});

describe("what Bun replies to before the service sees it is what docs/http.md lists", () => {
  const GET = "GET /healthz HTTP/1.1\r\nHost: a\r\n";
  const POST = "POST /customers HTTP/1.1\r\nHost: a\r\n";
  test.each([
    ["HTTP/1.1 without Host", "GET /healthz HTTP/1.1\r\n\r\n", 400],
    ["a control character in a header", `${GET}X: a\u0001b\r\n\r\n`, 400],
    ["a header line without a name", `${GET}: x\r\n\r\n`, 400],
    ["a header line without a colon", `${GET}x\r\n\r\n`, 400],
    ["a blank before the colon", `${GET}X : y\r\n\r\n`, 400],
    ["a folded line", `${GET}X: a\r\n b\r\n\r\n`, 400],
    ["two lengths", `${POST}Content-Length: 1\r\nContent-Length: 2\r\n\r\na`, 400],
    ["two lengths in a list", `${POST}Content-Length: 1, 1\r\n\r\na`, 400],
    ["a length and chunks", `${POST}Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`, 400],
    ["a length that is none", `${POST}Content-Length: +1\r\n\r\na`, 400],
    ["a transfer coding that does not end with chunked", `${POST}Transfer-Encoding: gzip\r\n\r\n`, 400],
    ["an empty line before the request line", `\r\n${GET}\r\n`, 400],
    ["OPTIONS *", "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", 400],
    ["a target without a slash", "GET healthz HTTP/1.1\r\nHost: a\r\n\r\n", 400],
    ["headers over 16 KiB", `${GET}X: ${"a".repeat(17_000)}\r\n\r\n`, 431],
    ["more than 200 headers", `${GET}${"X: a\r\n".repeat(201)}\r\n`, 431],
    ["another version of HTTP", "GET /healthz HTTP/1.2\r\nHost: a\r\n\r\n", 505],
    ["a tab in the target", "GET /health\tz HTTP/1.1\r\nHost: a\r\n\r\n", 505],
    ["an unknown method", "BREW /healthz HTTP/1.1\r\nHost: a\r\n\r\n", null],
  ])("%s", async (_, text, status) => {
    const received = await rawExchange(service.port, text);
    const reply = parseRawReply(received);
    expect([reply?.status ?? null, reply?.body ?? ""]).toEqual([status, ""]);
    expect(received.includes("x-request-id")).toBe(false);
  });
});
