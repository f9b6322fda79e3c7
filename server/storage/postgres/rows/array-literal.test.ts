import { expect, test } from "bun:test";
import { arrayLiteral, columnsOf } from "./array-literal.ts";

test.each<[readonly (string | null)[], string]>([
  [[], "{}"],
  [["a", null, "NULL", ""], '{"a",NULL,"NULL",""}'],
  [['say "hi"', "back\\slash", "{a,b}", "ü "], '{"say \\"hi\\"","back\\\\slash","{a,b}","ü "}'],
])("%j is %s", (values, literal) => {
  expect(arrayLiteral(values)).toBe(literal);
});

test("rows become a parameter for each column", () => {
  expect(
    columnsOf([
      ["a", "1"],
      ["b", null],
    ]),
  ).toEqual(['{"a","b"}', '{"1",NULL}']);
});
