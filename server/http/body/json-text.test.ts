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

describe("a text may nest 32 levels, and is refused before it is parsed where it nests more", () => {
  const nested = (levels: number, inside = "") => "[".repeat(levels) + inside + "]".repeat(levels);

  test.each([
    ["32 arrays", nested(32)],
    ["arrays beside each other", `[${Array(100).fill("[]").join()}]`],
    ["32 objects", `${'{"a":'.repeat(32)}0${"}".repeat(32)}`],
    ["brackets in a string", JSON.stringify({ name: "[{".repeat(100) })],
    ["brackets in a name", JSON.stringify({ ["[".repeat(100)]: 0 })],
    ["a quote and brackets in a string", JSON.stringify({ name: `"${"[".repeat(100)}` })],
    ["a backslash at the end of a string", JSON.stringify(["\\", "[".repeat(100)])],
    ["a letter that UTF-8 writes in several bytes", `["é😀", ${nested(31)}]`],
  ])("%s: parsed", (_, text) => {
    expect(parse(text)).toEqual({ ok: true, value: JSON.parse(text) });
  });

  test.each([
    ["33 arrays", nested(33)],
    ["33 arrays that stay open", "[".repeat(33)],
    ["33 objects", `${'{"a":'.repeat(33)}0${"}".repeat(33)}`],
    ["arrays and objects by turns", `${'[{"a":'.repeat(17)}0${"}]".repeat(17)}`],
    ["after a string with a quote and a backslash", `["\\"\\\\", ${nested(32)}]`],
    ["after a long list", `[${"0,".repeat(1_000)}${nested(32)}]`],
    ["as deep as a body can be", nested(32_768)],
    ["as deep as a body can be, and open", "[".repeat(65_536)],
    ["what is no UTF-8 behind", Buffer.concat([Buffer.from(nested(40)), Buffer.from([0xff])])],
  ])("%s: refused", (_, text) => {
    const result = parse(text);
    expect(result).toMatchObject({ ok: false, problem: { code: "malformed-json" } });
    expect(JSON.stringify(result)).toContain("more than 32 levels");
  });
});

describe("a text may have 256 properties, and is refused before it is parsed where it has more", () => {
  const object = (count: number, nameOf: (at: number) => string = String) =>
    `{${Array.from({ length: count }, (_, at) => `"${nameOf(at)}":0`).join()}}`;

  test.each([
    ["256 properties", object(256)],
    ["256 properties in two objects", `[${object(128)}, ${object(128)}]`],
    ["colons in strings", JSON.stringify({ [":".repeat(300)]: ':\\:"'.repeat(300) })],
    ["a long list", JSON.stringify(Array(1_000).fill(0))],
  ])("%s: parsed", (_, text) => {
    expect(parse(text)).toEqual({ ok: true, value: JSON.parse(text) });
  });

  test.each([
    ["257 properties", object(257)],
    ["257 properties of one name", object(257, () => "a")],
    ["257 properties in two objects", `[${object(128)}, ${object(129)}]`],
    ["as many as a body can have", object(7_000)],
    ["what is no JSON behind", `${object(257)} nothing`],
  ])("%s: refused", (_, text) => {
    const result = parse(text);
    expect(result).toMatchObject({ ok: false, problem: { code: "malformed-json" } });
    expect(JSON.stringify(result)).toContain("more than 256 properties");
  });
});

test("any value that JSON can write comes back as it was, but for -0, which JSON.stringify writes as 0", () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 30 }), (value) => {
      const text = JSON.stringify(value);
      expect(parse(text)).toEqual({ ok: true, value: JSON.parse(text) });
    }),
  );
});

test.each<[string, string]>([
  ["without escapes", "x".repeat(1_000)],
  ["that ends in an escaped quote", `${"x".repeat(1_000)}"`],
  ["that ends in an escaped backslash", `${"x".repeat(1_000)}\\`],
  ["of escaped quotes", '"'.repeat(1_000)],
  ["of escaped backslashes", "\\".repeat(1_001)],
  ["of brackets and colons", "[{:".repeat(1_000)],
  ["of two bytes a character", "é:".repeat(1_000)],
])("a long string %s ends where it ends", (_, text) => {
  const body = { name: text, [text]: [text, { x: text }], email: "x" };
  expect(parse(JSON.stringify(body))).toEqual({ ok: true, value: body });
  expect(parse(JSON.stringify(body).slice(0, -12)).ok).toBe(false);
});

test.each(['"', "\\", "x"])("a string of any length ends where it ends, with %p near its end", (end) => {
  for (let length = 0; length <= 130; length += 1) {
    const value = { [`${"x".repeat(length)}${end}`]: `${"y".repeat(length)}${end}z`, last: "[" };
    expect(parse(JSON.stringify(value))).toEqual({ ok: true, value });
  }
});

test("a native search is begun for long strings alone: 20,000 for empty ones took 4 ms", () => {
  let searches = 0;
  class Watched extends Uint8Array {
    override indexOf(byte: number, from?: number): number {
      searches += 1;
      return super.indexOf(byte, from);
    }
  }
  const texts = ["", "Ada", "ada@example.com", "x".repeat(60)];
  expect(parse(new Watched(Buffer.from(JSON.stringify(texts))))).toEqual({ ok: true, value: texts });
  expect(searches).toBe(0);
  parse(new Watched(Buffer.from(JSON.stringify(["x".repeat(1_000)]))));
  expect(searches).toBeGreaterThan(0);
});

test("a text is refused for a repeated member exactly where its object has one", () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.string(), fc.jsonValue()), { maxLength: 6 }), (members) => {
      const text = `{${members.map(([name, value]) => `${JSON.stringify(name)}:${JSON.stringify(value)}`).join()}}`;
      expect(parse(text).ok).toBe(new Set(members.map(([name]) => name)).size === members.length);
    }),
  );
});
