import { expect, test } from "bun:test";
import fc from "fast-check";
import {
  formatJson,
  indentJson,
  isJsonObject,
  JSON_DEPTH_MAX,
  type Json,
  JsonNumber,
  jsonEquals,
  parseJson,
} from "./json.ts";

test.each([
  ["a number beyond 2^53", '{"n":9007199254740993}'],
  ["a decimal with a trailing zero", '{"n":1.10}'],
  ["a number no double can hold", "[1e400,-0,1E5,1.0e-7,123456789012345678901234567890]"],
  ["members whose names look like integers, in their order", '{"b":1,"10":2,"2":3}'],
  ["__proto__ and constructor, as plain members", '{"__proto__":{"a":1},"constructor":null}'],
  ["empty containers", '{"a":{},"b":[],"":""}'],
  ["structure characters in a string", '{"a}":"[{,:]}\\\\","b":"\\"]"}'],
  ["a lone surrogate", '"\\ud800"'],
  ["a bare scalar", "true"],
])("%s comes out as it came in", (_, text) => {
  expect(formatJson(parseJson(text))).toBe(text);
});

test.each([
  "",
  " ",
  "{",
  "[1,]",
  '{"a":1,}',
  "01",
  "1.",
  "+1",
  "NaN",
  "'a'",
  '{"a"}',
  "[1 2]",
  '"a',
  "\u00a01",
])("what is not JSON is a SyntaxError: %p", (text) => {
  expect(() => parseJson(text)).toThrow(SyntaxError);
});

test("depth is limited, and refused as a SyntaxError, not as an exhausted stack", () => {
  const nested = (levels: number) => "[".repeat(levels) + "]".repeat(levels);
  expect(formatJson(parseJson(nested(JSON_DEPTH_MAX)))).toBe(nested(JSON_DEPTH_MAX));
  expect(() => parseJson(nested(JSON_DEPTH_MAX + 1))).toThrow(SyntaxError);
  expect(() => parseJson(nested(1_000_000))).toThrow(SyntaxError);
});

test("a string of a million characters is read whole", () => {
  const text = JSON.stringify({ long: 'x\\"'.repeat(300_000) });
  expect(formatJson(parseJson(text)) === text).toBe(true);
});

test("a byte order mark before the text is tolerated", () => {
  expect(formatJson(parseJson("\uFEFF{}"))).toBe("{}");
});

test("of members with the same name the last value counts", () => {
  expect(formatJson(parseJson('{"a":1,"b":2,"a":3}'))).toBe('{"a":3,"b":2}');
});

test("only JSON number syntax makes a JsonNumber", () => {
  for (const source of ["", "1.", ".5", "01", "0x1", "1e", "Infinity", " 1", "1\n"]) {
    expect(() => new JsonNumber(source)).toThrow(SyntaxError);
  }
});

const number = fc
  .tuple(
    fc.constantFrom("", "-"),
    fc.bigInt({ min: 0n, max: 10n ** 40n }),
    fc.constantFrom("", ".0", ".10", ".000000000000000000001"),
    fc.constantFrom("", "e5", "E-400", "e+77"),
  )
  .map((parts) => new JsonNumber(parts.join("")));
const name = fc.oneof(
  fc.string({ unit: "binary" }),
  fc.constantFrom("__proto__", "10", "2", "toString", '"', "\\"),
);
const { value } = fc.letrec<{ value: Json }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    fc.constantFrom(null, true, false),
    fc.string({ unit: "binary" }),
    number,
    fc.array(tie("value"), { maxLength: 4 }),
    fc.array(fc.tuple(name, tie("value")), { maxLength: 4 }).map((members) => new Map(members)),
  ),
}));

test("law: parse after format is the same value, with or without indentation", () => {
  fc.assert(
    fc.property(value, fc.constantFrom(0, 2, 4), (json, indent) => {
      const text = indentJson(json, indent);
      const again = parseJson(text);
      return jsonEquals(again, json) && indentJson(again, indent) === text;
    }),
  );
});

test("law: what plain JSON.stringify writes, we write alike", () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.constantFrom(0, 2), (plain, indent) => {
      const text = JSON.stringify(plain, null, indent);
      // Integer-like names apart, which JSON.stringify has itself put in front, order is the source's.
      return indentJson(parseJson(text), indent) === text;
    }),
  );
});

test("law: whitespace between tokens never matters", () => {
  fc.assert(
    fc.property(value, fc.stringMatching(/^[ \t\r\n]{0,3}$/), (json, space) => {
      const spread = indentJson(json, 1).replaceAll("\n", `\n${space}`);
      return jsonEquals(parseJson(`${space}${spread}${space}`), json);
    }),
  );
});

test("equality looks at members in any order and at numbers as written", () => {
  expect(jsonEquals(parseJson('{"a":1,"b":[2]}'), parseJson('{"b":[2],"a":1}'))).toBe(true);
  expect(jsonEquals(parseJson("1.10"), parseJson("1.1"))).toBe(false);
  expect(jsonEquals(parseJson('{"a":1}'), parseJson('{"b":1}'))).toBe(false);
  expect(jsonEquals(parseJson("[1]"), parseJson('{"0":1}'))).toBe(false);
  expect(jsonEquals(parseJson("null"), parseJson("{}"))).toBe(false);
  expect(isJsonObject(parseJson("[]"))).toBe(false);
});
