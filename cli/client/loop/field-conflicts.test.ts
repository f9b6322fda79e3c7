import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { type Json, JsonNumber, type JsonObject } from "../json.ts";
import {
  conflictingFields,
  differingFields,
  hasReached,
  hasValues,
  looksWritten,
} from "./field-conflicts.ts";

const object = (members: Record<string, Json>): JsonObject => new Map(Object.entries(members));
const value = fc.constantFrom<Json>("a", "b", "c", null, true, new JsonNumber("1.10"), new JsonNumber("1.1"));
const state = fc.dictionary(fc.constantFrom("name", "email", "status", "Rate"), value).map(object);

describe("a three-way merge", () => {
  test("conflicts exactly where someone else changed a named field to something else than mine", () => {
    fc.assert(
      fc.property(state, state, state, (base, theirs, change) => {
        const conflicts = conflictingFields(base, theirs, change).map(({ field }) => field);
        for (const [field, mine] of change) {
          const changed = !hasValues(theirs, object({ [field]: base.get(field) ?? null }));
          const same = hasValues(theirs, object({ [field]: mine }));
          expect(conflicts.includes(field)).toBe(changed && !same);
        }
        expect(conflicts.every((field) => change.has(field))).toBe(true);
      }),
    );
  });

  test("has none where nothing moved, nor where all have what I want", () => {
    fc.assert(
      fc.property(state, state, (base, change) => {
        expect(conflictingFields(base, base, change)).toEqual([]);
        expect(conflictingFields(base, new Map([...base, ...change]), change)).toEqual([]);
      }),
    );
  });

  test("finds a member whatever its casing, and shows the three values", () => {
    expect(conflictingFields(object({ Name: "a" }), object({ Name: "b" }), object({ name: "c" }))).toEqual([
      { field: "name", base: "a", theirs: "b", mine: "c" },
    ]);
  });

  test("tells 1.10 from 1.1: the server's text counts", () => {
    expect(hasValues(object({ Rate: new JsonNumber("1.10") }), object({ rate: new JsonNumber("1.1") }))).toBe(
      false,
    );
  });

  test("an absent member and null are the same wish", () => {
    expect(hasValues(object({}), object({ note: null }))).toBe(true);
    expect(differingFields(object({ a: null, b: "x" }), object({ b: "y" }))).toMatchObject([{ field: "b" }]);
  });
});

test("text that the server stored without the blanks around it counts as our own write", () => {
  expect(hasValues(object({ name: "Ada" }), object({ name: " Ada " }))).toBe(false);
  expect(looksWritten(object({ name: "Ada" }), object({ name: " Ada " }))).toBe(true);
  expect(looksWritten(object({ name: "Ada" }), object({ name: "Eve" }))).toBe(false);
});

test.each<[string, string, string, string, boolean]>([
  ["case", "ada@x", "Eve@X", "eve@x", true],
  ["blanks", "Ada", " Eve ", "Eve", true],
  ["Unicode form", "Ada", "E\u0301ve", "\u00c9ve", true],
  ["another text", "ada@x", "Eve@X", "eva@x", false],
  ["case, from the same text in another case", "ada@x", "ADA@x", "ada@x", false],
  ["nothing, from the same text in another case", "ada@x", "ADA@x", "ADA@x", true],
])(
  "a wish is reached by text that differs in no more than case, blanks and form, unless it was there before: %s",
  (_, before, wanted, now, reached) => {
    const [base, change, value] = [before, wanted, now].map((text) => object({ email: text }));
    if (base === undefined || change === undefined || value === undefined) throw new Error("three values");
    expect(hasReached(base, value, change)).toBe(reached);
    const conflicts = conflictingFields(base, value, change);
    expect(conflicts.length > 0).toBe(!reached && before !== now);
  },
);
