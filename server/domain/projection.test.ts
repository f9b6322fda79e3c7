import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { FIELD_NAMES, type FieldName } from "./customer/field-registry.ts";
import { defaultProjection, FIELDS_MAX, hidesDefaultField, parseFields, projectionOf } from "./projection.ts";

const EVERYTHING = new Set(FIELD_NAMES);
const parse = (...lists: string[]) => parseFields(lists, EVERYTHING);
const codeOf = (...lists: string[]) => {
  const result = parse(...lists);
  return result.ok ? result.value.fields.join() : result.problem.code;
};

test("a projection is in registry order, each field once", () => {
  expect(projectionOf(["email", "id", "email"])).toEqual({ kind: "named", fields: ["id", "email"] });
});

test("order, casing, blanks, repeats and a repeated parameter do not matter", () => {
  const spelled = fc
    .constantFrom(...FIELD_NAMES)
    .chain((name) =>
      fc.tuple(
        fc.constant(name),
        fc.constantFrom("", " ", "\t "),
        fc.array(fc.boolean(), { minLength: 6, maxLength: 6 }),
      ),
    );
  fc.assert(
    fc.property(fc.array(spelled, { minLength: 1, maxLength: FIELDS_MAX }), fc.nat(), (words, split) => {
      const texts = words.map(
        ([name, blank, upper]) =>
          `${blank}${[...name].map((letter, at) => (upper[at] ? letter.toUpperCase() : letter)).join("")}${blank}`,
      );
      const at = split % texts.length;
      const lists = [texts.slice(0, at), texts.slice(at)]
        .filter((list) => list.length > 0)
        .map((list) => list.join(","));
      const result = parse(...lists);
      expect(result).toEqual({ ok: true, value: projectionOf(words.map(([name]) => name)) });
    }),
  );
});

describe("a list that is not all field names is refused", () => {
  test.each([
    ["", "empty-fields"],
    [",", "empty-fields"],
    ["name,", "empty-fields"],
    ["name, ,email", "empty-fields"],
    ["nome", "unknown-field"],
    ["createdAt", "unknown-field"],
    ["rowversion", "unknown-field"],
    ["__proto__", "unknown-field"],
    ["constructor", "unknown-field"],
    ["name;email", "unknown-field"],
    ["name\u00a0", "unknown-field"],
    [Array(16).fill("name").join(), "name"],
    [Array(17).fill("name").join(), "too-many-fields"],
  ])("%p: %s", (list, code) => {
    expect(codeOf(list)).toBe(code);
  });
});

test("only fields that the caller may read are listed and suggested", () => {
  const readable = new Set<FieldName>(["id", "name", "status"]);
  const result = parseFields(["emial,nmae"], readable);
  expect(result).toMatchObject({
    problem: {
      code: "unknown-field",
      extensions: {
        unknownFields: ["emial", "nmae"],
        selectableFields: ["id", "name", "status"],
        didYouMean: ["name"],
      },
    },
  });
  expect(JSON.stringify(result)).not.toContain("email");
});

test("what a client sent comes back in part only", () => {
  const result = parse(
    Array(200)
      .fill(0)
      .map((_, index) => `x${index}${"y".repeat(200)}`)
      .join(),
  );
  expect(JSON.stringify(result).length).toBeLessThan(4000);
});

test("the default set is id, name and email, less what is hidden", () => {
  const whole = defaultProjection(EVERYTHING);
  const narrowed = defaultProjection(new Set<FieldName>(["id", "name", "status"]));
  expect([whole.fields, narrowed.fields]).toEqual([
    ["id", "name", "email"],
    ["id", "name"],
  ]);
  expect([whole, narrowed, projectionOf(["id"])].map(hidesDefaultField)).toEqual([false, true, false]);
});
