import { expect, test } from "bun:test";
import { nearest } from "./nearest.ts";

test.each([
  ["emial", "email"],
  ["EMAIL", "email"],
  ["e-mail", "email"],
  ["nmae", "name"],
  ["names", "name"],
  ["di", "id"],
  ["put", null],
  ["xx", null],
  ["password", null],
])("%p was meant as %p", (mistyped, word) => {
  expect(nearest(mistyped, ["id", "name", "email", "get"])).toBe(word as "id");
});
