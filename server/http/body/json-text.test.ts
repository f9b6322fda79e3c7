import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { parseJsonText } from "./json-text.ts";

const parse = (text: string | Uint8Array) =>
  parseJsonText(typeof text === "string" ? new TextEncoder().encode(text) : text);

describe("what is not one JSON text in UTF-8 is refused with its reason", () => {
  test.each([
    ["", /empty/],
    ["{", /not one JSON text/],
    ["{} {}", /not one JSON text/],
    ["{'a':1}", /not one JSON text/],
    ['{"a":1,}', /not one JSON text/],
    ["\ufeff{}", /byte order mark/],
    [new Uint8Array([0x7b, 0xff, 0x7d]), /not UTF-8/],
    [new Uint8Array([0xc0, 0x80]), /not UTF-8/],
    [new Uint8Array([0x7b, 0x00, 0x7d, 0x00]), /not one JSON text/],
    ['{"a":1,"a":2}', /`a` twice/],
    ['{"name":"x","na\\u006de":"y"}', /`name` twice/],
    ['{"a":{"b":"}"},"c":"\\"a\\":","a":0}', /`a` twice/],
    ['{"":1,"":2}', /twice/],
    ['{"__proto__":1,"__proto__":2}', /twice/],
  ])("%p: %p", (text, reason) => {
    const result = parse(text);
    expect(result).toMatchObject({ ok: false, problem: { code: "malformed-json" } });
    expect(JSON.stringify(result)).toMatch(reason);
  });
});

test("a text nested as deep as a body can be is parsed or refused, never a crash", () => {
  for (const text of ["[".repeat(65_536), "[".repeat(32_768) + "]".repeat(32_768), '{"a":'.repeat(13_000)]) {
    const result = parse(text);
    expect(result.ok || result.problem.code === "malformed-json").toBe(true);
  }
});

test("any value that JSON can write comes back as it was, but for -0, which JSON.stringify writes as 0", () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      const text = JSON.stringify(value);
      expect(parse(text)).toEqual({ ok: true, value: JSON.parse(text) });
    }),
  );
});

test("a text is refused for a repeated member exactly where its object has one", () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.string(), fc.jsonValue()), { maxLength: 6 }), (members) => {
      const text = `{${members.map(([name, value]) => `${JSON.stringify(name)}:${JSON.stringify(value)}`).join()}}`;
      expect(parse(text).ok).toBe(new Set(members.map(([name]) => name)).size === members.length);
    }),
  );
});
