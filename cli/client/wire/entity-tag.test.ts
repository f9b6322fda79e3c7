import { expect, test } from "bun:test";
import { parseEntityTag } from "./entity-tag.ts";

test.each([
  ['"abc"', { kind: "strong", tag: '"abc"' }],
  ['""', { kind: "strong", tag: '""' }],
  ['"a,b/c="', { kind: "strong", tag: '"a,b/c="' }],
  ['"a b"', { kind: "strong", tag: '"a b"' }],
  ['"W/x"', { kind: "strong", tag: '"W/x"' }],
  ['"\xe9"', { kind: "strong", tag: '"\xe9"' }],
  [' \t"abc" ', { kind: "strong", tag: '"abc"' }],
  ['W/"abc"', { kind: "weak", tag: 'W/"abc"' }],
  ['w/"abc"', { kind: "weak", tag: 'w/"abc"' }],
  ["abc", { kind: "malformed", tag: "abc" }],
  ['"a", "b"', { kind: "malformed", tag: '"a", "b"' }],
  ['"abc', { kind: "malformed", tag: '"abc' }],
  ["*", { kind: "malformed", tag: "*" }],
  ["", { kind: "missing" }],
  ["  ", { kind: "missing" }],
  [undefined, { kind: "missing" }],
] as const)("%p", (header, expected) => {
  expect(parseEntityTag(header)).toEqual(expected);
});
