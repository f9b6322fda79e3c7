import { expect, test } from "bun:test";
import fc from "fast-check";
import { curlLine } from "./curl.ts";
import type { Exchange } from "./schema.ts";

function exchange(request: Exchange["request"]): Exchange {
  return {
    n: 1,
    purpose: "probe",
    caller: "main",
    via: "undici",
    request,
    reply: null,
    failure: null,
    startedMs: 0,
    durationMs: 0,
  };
}

/** What a shell gives to curl: the line is run with a function of that name. */
function argumentsOf(line: string): string[] {
  const script = `curl() { printf '%s\\0' "$@"; }; ${line}`;
  const { stdout, exitCode } = Bun.spawnSync(["bash", "-c", script], {
    env: { ...process.env, TOKEN: "sesame" },
  });
  expect(exitCode).toBe(0);
  return stdout.toString("utf8").split("\0").slice(0, -1);
}

const request = (value: string, body: string | null = null): Exchange["request"] => ({
  method: "PUT",
  url: "http://127.0.0.1:1/customers/a?fields=id,name",
  headers: [
    ["User-Agent", "kit"],
    ["Authorization", "Bearer $TOKEN"],
    ["If-Match", value],
  ],
  body,
});

test("the variable is left to the shell, all else is literal", () => {
  const line = curlLine(exchange(request(`"it's $9 \`x\`"`, '{"Name":"a\'b"}')));
  expect(argumentsOf(line)).toEqual([
    "-i",
    "-X",
    "PUT",
    "http://127.0.0.1:1/customers/a?fields=id,name",
    "-H",
    "Authorization: Bearer sesame",
    "-H",
    `If-Match: "it's $9 \`x\`"`,
    "-H",
    "Content-Type:",
    "--data-binary",
    '{"Name":"a\'b"}',
  ]);
});

test("a blank header is sent empty: curl would drop it", () => {
  expect(argumentsOf(curlLine(exchange(request("  \t"))))).toContain("If-Match;");
});

const shaped = (change: Partial<Exchange>) => ({ ...exchange(request('"a"', "{}")), ...change });

test.each([
  ["HTTP/1.0", shaped({ framing: "http/1.0" }), ["--http1.0"]],
  [
    "the whole URL in the request line",
    shaped({ framing: "absolute-form" }),
    ["--request-target", request("x").url],
  ],
  ["a chunked body", shaped({ framing: "chunked" }), ["Transfer-Encoding: chunked"]],
  ["no Content-Type, where curl would add one", shaped({}), ["Content-Type:"]],
  [
    "dots in the path, which curl would resolve",
    shaped({ request: { ...request("x"), url: "http://127.0.0.1:1/./customers/a" } }),
    ["--path-as-is"],
  ],
])("%s stands in the line", (_, given, options) => {
  expect(argumentsOf(curlLine(given))).toEqual(expect.arrayContaining(options));
});

test("what went before on the connection goes before", () => {
  const before = { ...exchange(request("x")), request: { ...request('"former"', "{1}"), method: "PATCH" } };
  const given = argumentsOf(curlLine(shaped({ follows: 1 }), before));
  expect(given.indexOf("{1}")).toBeLessThan(given.indexOf("--next"));
  expect(given.indexOf("--next")).toBeLessThan(given.indexOf("{}"));
});

test("law: header and body reach curl as they were", () => {
  const text = fc
    .string({ unit: fc.constantFrom(..."aZ09 '\"\\`!$#%&*(){}[]<>|;~\t\n"), minLength: 1, maxLength: 20 })
    .filter((value) => value.trim() !== "" && !/\$\{?[A-Z]/.test(value));
  fc.assert(
    fc.property(text, text, (value, body) => {
      const header = value.replaceAll("\n", "");
      if (header.trim() === "" || /\$\{?[A-Z]/.test(header)) return;
      const given = argumentsOf(curlLine(exchange(request(header, body))));
      expect(given).toContain(`If-Match: ${header}`);
      expect(given.at(-1)).toBe(body);
    }),
    { numRuns: 40 },
  );
});
