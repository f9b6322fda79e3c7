import fc from "fast-check";

/** A request as parts, each of them possibly absurd; whole as HTTP unless `bareAnswer` says otherwise. */
export type Traffic = {
  readonly method: string;
  /** `{id}` stands for the id of a customer. */
  readonly target: string;
  /**
   * Header lines without Content-Length and Transfer-Encoding.
   * `{tag}` stands for a current entity-tag, `{token}` for a token.
   */
  readonly lines: readonly string[];
  readonly body: Uint8Array | null;
  /** The sizes of the chunks that the body is cut into; null: a Content-Length. */
  readonly chunkBytes: number | null;
};

const latin1 = fc
  .array(
    fc.integer({ min: 0x20, max: 0xff }).filter((code) => code !== 0x7f),
    { maxLength: 40 },
  )
  .map((codes) => String.fromCharCode(...codes));
const word = fc.stringMatching(/^[A-Za-z0-9._~!$&'()*+;=:@-]{0,30}$/);

/** Methods that Bun's parser does not know. */
export const UNKNOWN_METHODS = ["BREW", "get", "Put", "X"];

const method = fc.oneof(
  {
    weight: 12,
    arbitrary: fc.constantFrom(
      "GET",
      "GET",
      "HEAD",
      "POST",
      "POST",
      "PUT",
      "PUT",
      "PUT",
      "PATCH",
      "PATCH",
      "PATCH",
      "DELETE",
      "OPTIONS",
    ),
  },
  { weight: 1, arbitrary: fc.constantFrom("TRACE", "CONNECT", "PROPFIND", "PURGE", "LINK", "SEARCH") },
  { weight: 1, arbitrary: fc.constantFrom(...UNKNOWN_METHODS) },
);

const path = fc.oneof(
  { weight: 14, arbitrary: fc.constant("/customers/{id}") },
  { weight: 5, arbitrary: fc.constantFrom("/customers", "/customers/search") },
  {
    weight: 2,
    arbitrary: fc.constantFrom(
      "/metrics",
      "/healthz",
      "/readyz",
      "/problems/stale",
      "/problems/invalid-body",
    ),
  },
  {
    weight: 4,
    arbitrary: fc.constantFrom(
      "/",
      "/customers/",
      "//customers/{id}",
      "/customers//{id}",
      "/customers/{id}/",
      "/Customers/{id}",
      "/customers/%zz",
      "/customers/%",
      "/customers/%FF%FE",
      "/customers/%00",
      "/customers/..%2f..%2fhealthz",
      "/customers/%2e%2e",
      "/./customers/{id}",
      "/x/../customers/{id}",
      "/customers\\{id}",
      "/customers;x/{id}",
      "/%63ustomers/{id}",
      "/customers/{id}%20",
      "/customers/__proto__",
      "/customers/constructor",
      "/problems/__proto__",
      "/problems/toString",
      "http://elsewhere/customers/{id}",
      "http://elsewhere",
      "/customers/\u00e9\u00ff",
      `/customers/${"a".repeat(5000)}`,
    ),
  },
  { weight: 2, arbitrary: word.map((text) => `/${text}`) },
  { weight: 2, arbitrary: word.map((text) => `/customers/${text}`) },
);
const query = fc.oneof(
  { weight: 14, arbitrary: fc.constant("") },
  {
    weight: 3,
    arbitrary: fc.constantFrom(
      "?",
      "?fields=name",
      "?fields=name,email,status,id",
      "?fields=",
      "?fields=%",
      "?fields=%E9",
      "?fields=name&fields[]=x",
      "?fields=__proto__",
      "?limit=5&status=active",
      "?limit=0",
      "?limit=1e3",
      "?limit=1&limit=2",
      "?cursor=AAAA",
      `?cursor=${"A".repeat(64)}`,
      "?status=%00",
      `?fields=${"name,".repeat(2000)}`,
      `?${"&".repeat(3000)}`,
      `?${"a=b&".repeat(2000)}`,
      "?fields=name#fragment",
      "??fields=name",
    ),
  },
  { weight: 2, arbitrary: word.map((text) => `?fields=${text}`) },
  { weight: 1, arbitrary: word.map((text) => `?${text}`) },
);

/** Most with a usable token, so that most requests get past the first checks. */
const authorization = fc.oneof(
  { weight: 10, arbitrary: fc.constant(["Authorization: Bearer {token}"]) },
  {
    weight: 3,
    arbitrary: fc.constantFrom<string[]>(
      [],
      ["Authorization: bearer  {token}"],
      ["Authorization: Bearer"],
      ["Authorization: Bearer {token}", "Authorization: Bearer {token}"],
      ["Authorization: Basic Zm9vOmJhcg=="],
      [`Authorization: Bearer cst_${"x".repeat(40)}`],
      [`Authorization: Bearer ${"x".repeat(4000)}`],
      ["authorization: Bearer {token},"],
    ),
  },
);
const host = fc.oneof(
  { weight: 12, arbitrary: fc.constant("Host: localhost") },
  {
    weight: 2,
    arbitrary: fc.constantFrom(
      "Host: x",
      "Host: a.b",
      "Host: ",
      "Host: a b",
      "Host: evil/zz",
      "Host: a?b",
      "Host: a@b:99999",
      "Host: [::1]:80",
      "Host: \u00e9",
      "Host: localhost\r\nHost: other",
    ),
  },
);
const named = (name: string, ...values: string[]): fc.Arbitrary<string[]> =>
  fc
    .oneof(
      { weight: 3, arbitrary: fc.constantFrom("", ...values) },
      { weight: 1, arbitrary: latin1.map((text) => text) },
    )
    .map((value) => [`${name}: ${value}`]);
const headers: readonly fc.Arbitrary<string[]>[] = [
  named("If-Match", "*", "W/{tag}", '"x", {tag}', ",", '"'),
  named("If-None-Match", "{tag}", "*", "W/{tag}", '"', '"a", "b'),
  named("Content-Type", "text/plain", "application/json;", ";", "application/merge-patch+json; a=b"),
  named("Content-Encoding", "gzip", "identity", "br, gzip"),
  named("Prefer", "return=representation", "return=minimal", 'return="representation"', "return", "=,;="),
  named("Idempotency-Key", "k", '"k"', '"k', '"k\\"', "{tag}", "k k", "x".repeat(255), "x".repeat(256)),
  named("X-Request-Id", "abc", "0b8f7c1e-7a55-4c0f-9a0e-5d6f1c2b3a49", "x".repeat(65), "<script>"),
  named("User-Agent", "fuzz/1.2.3", `fuzz/${"9".repeat(40)}`, "fuzz", "/1"),
  named("Accept", "text/html", "*/*", "application/json;q=0"),
  named("Accept-Encoding", "gzip", "identity;q=0"),
  named("Range", "bytes=0-1", "bytes=5-"),
  named("Origin", "https://example.com", "null"),
  named("Access-Control-Request-Method", "PUT"),
  named("If-Unmodified-Since", "Thu, 01 Jan 1970 00:00:00 GMT"),
  named("Cookie", "a=b; c"),
  named("X-Forwarded-For", "127.0.0.1"),
  named("X-HTTP-Method-Override", "DELETE"),
  fc.constantFrom<string[]>(
    ["Connection: close"],
    ["Connection: Upgrade", "Upgrade: websocket"],
    ["TE: trailers"],
    ["Expect: 100-continue"],
    ["Expect: something"],
  ),
  fc
    .array(word, { minLength: 1, maxLength: 20 })
    .map((words) => words.map((text, index) => `X-${index}: ${text}`)),
];
/** Lines that make a request one that Bun answers by itself. */
const unwelcome = fc.constantFrom<string[]>(
  ["X-Control: a\u0001b"],
  ["X-Nul: \u0000"],
  ["If-Match: \u000b{tag}"],
  ["X Y: spaced name"],
  [": no name"],
  ["no colon"],
  ["X-Folded: a\r\n b"],
  [`X-Long: ${"x".repeat(17_000)}`],
  Array.from({ length: 210 }, (_, index) => `X-${index}: y`),
);
const usual = (line: string): fc.Arbitrary<string[]> => fc.constantFrom<string[]>([line], [line], []);
const lines = fc
  .tuple(
    host,
    authorization,
    usual("If-Match: {tag}"),
    usual("Content-Type: application/json"),
    fc.subarray([...headers], { maxLength: 6 }).chain((some) => fc.tuple(...some)),
    fc.oneof({ weight: 30, arbitrary: fc.constant<string[]>([]) }, { weight: 1, arbitrary: unwelcome }),
  )
  .map(([first, caller, tag, type, some, last]) => [
    ...first.split("\r\n"),
    ...caller,
    ...tag,
    ...type,
    ...some.flat(),
    ...last,
  ]);

const body = fc.oneof(
  { weight: 4, arbitrary: fc.constant(null) },
  {
    weight: 7,
    arbitrary: fc
      .constantFrom(
        '{"name":"Ada","email":"ada@example.com"}',
        '{"name":"Ada","email":"ada@example.com"}',
        '{"name":"Ada","email":"ada@example.com"}',
        '{"name":"Ada"}',
        '{"status":"closed"}',
        "{}",
        '{"limit":3}',
        '{"email":"ada@example.com","fields":["name","id"]}',
      )
      .map((text) => Buffer.from(text)),
  },
  { weight: 2, arbitrary: fc.json({ maxDepth: 4 }).map((text) => Buffer.from(text)) },
  { weight: 2, arbitrary: fc.uint8Array({ maxLength: 200 }) },
  {
    weight: 1,
    arbitrary: fc
      .constantFrom(
        "",
        "[".repeat(65_536),
        '{"a":'.repeat(13_000),
        `{${Array.from({ length: 6000 }, (_, index) => `"k${index}":0`).join()}}`,
        `{"name":"${"\\u0041".repeat(10_000)}"}`,
        `{"name":${"9".repeat(60_000)}}`,
        `"${"\\\\".repeat(30_000)}"`,
        '{"__proto__":{"a":1},"constructor":{"prototype":1}}',
        "x".repeat(65_537),
        "x".repeat(300_000),
      )
      .map((text) => Buffer.from(text)),
  },
);

export const anyTraffic: fc.Arbitrary<Traffic> = fc.record({
  method,
  target: fc.tuple(path, query).map((parts) => parts.join("")),
  lines,
  body,
  chunkBytes: fc.oneof(
    { weight: 3, arbitrary: fc.constant(null) },
    { weight: 1, arbitrary: fc.integer({ min: 1, max: 70_000 }) },
  ),
});

/** The request as bytes. */
export function trafficBytes(
  { method, target, lines, body, chunkBytes }: Traffic,
  fill: (text: string) => string,
): Uint8Array {
  const isChunked = body !== null && chunkBytes !== null;
  const framing = isChunked
    ? ["Transfer-Encoding: chunked"]
    : body === null
      ? []
      : [`Content-Length: ${body.byteLength}`];
  const head = fill([`${method} ${target} HTTP/1.1`, ...lines, ...framing, "", ""].join("\r\n"));
  return Buffer.concat([
    Buffer.from(head, "latin1"),
    isChunked ? chunked(body, chunkBytes) : (body ?? new Uint8Array()),
  ]);
}

function chunked(body: Uint8Array, chunkBytes: number): Uint8Array {
  const parts: Uint8Array[] = [];
  // At most a hundred chunks, however small they were wanted.
  const size = Math.max(chunkBytes, Math.ceil(body.byteLength / 100));
  for (let start = 0; start < body.byteLength; start += size) {
    const part = body.subarray(start, start + size);
    parts.push(Buffer.from(`${part.byteLength.toString(16)}\r\n`), part, Buffer.from("\r\n"));
  }
  return Buffer.concat([...parts, Buffer.from("0\r\n\r\n")]);
}
