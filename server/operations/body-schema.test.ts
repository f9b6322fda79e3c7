import { describe, expect, test } from "bun:test";
import { CREATION_BODY, PATCH_BODY, REPLACEMENT_BODY, SEARCH_BODY } from "../domain/customer.ts";
import { BodySchema } from "./body-schema.ts";

const replacement = new BodySchema(REPLACEMENT_BODY);
const OK = { name: "Ada", email: "ada@example.com" };

function faults(
  body: unknown,
  schema: { read: (body: unknown) => unknown } = replacement,
): [string, string][] {
  const result = schema.read(body) as {
    problem?: { extensions: { errors: { pointer: string; detail: string }[] } };
  };
  return result.problem?.extensions.errors.map(({ pointer, detail }) => [pointer, detail]) ?? [];
}

test("a body that is what the operation takes is returned as it is", () => {
  for (const body of [OK, { ...OK, id: "x" }])
    expect(replacement.read(body)).toEqual({ ok: true, value: body });
});

describe("every fault is named by its pointer and what would be right", () => {
  test.each([
    [[], [["", "must be a JSON object; it is an array"]]],
    ["x", [["", "must be a JSON object; it is a string"]]],
    [null, [["", "must be a JSON object; it is null"]]],
    [1, [["", "must be a JSON object; it is a number"]]],
    [
      {},
      [
        ["/name", "is required"],
        ["/email", "is required"],
      ],
    ],
    [{ ...OK, name: 1 }, [["/name", "must be a string; it is a number"]]],
    [{ ...OK, name: ["x"] }, [["/name", "must be a string; it is an array"]]],
    [{ ...OK, name: "" }, [["/name", "must not be empty"]]],
    [{ ...OK, name: "   " }, [["/name", "must not be empty"]]],
    [{ ...OK, name: "x".repeat(201) }, [["/name", "must have at most 200 characters; it has 201"]]],
    [{ ...OK, name: "a\u0000b" }, [["/name", "must not have control characters"]]],
    [{ ...OK, name: "a\nb" }, [["/name", "must not have control characters"]]],
    [{ ...OK, name: "\ud800" }, [["/name", "must be well-formed Unicode; it has a lone surrogate"]]],
    [{ ...OK, email: "a" }, [["/email", "must have 3 to 254 characters; it has 1"]]],
    [{ ...OK, email: `${"a".repeat(250)}@b.cd` }, [["/email", "must have 3 to 254 characters; it has 255"]]],
    [
      { ...OK, email: "a.b.c" },
      [
        [
          "/email",
          "must be one address of the form local@domain, without blanks, brackets or a display name",
        ],
      ],
    ],
    [
      { ...OK, status: "active" },
      [["/status", "is not a member that this takes; choose from id, name, email"]],
    ],
    [{ ...OK, Name: "x" }, [["/Name", "is not a member that this takes; did you mean `name`?"]]],
    [{ ...OK, emial: "x" }, [["/emial", "is not a member that this takes; did you mean `email`?"]]],
    [{ ...OK, "a/b~c": "x" }, [["/a~1b~0c", "is not a member that this takes; choose from id, name, email"]]],
    [
      JSON.parse('{"name":"x","email":"a@b","__proto__":{}}'),
      [["/__proto__", "is not a member that this takes; choose from id, name, email"]],
    ],
  ])("%j", (body, expected) => {
    expect(faults(body)).toEqual(expected as [string, string][]);
  });
});

test("lengths count code points: 200 of a name that takes two UTF-16 units each are allowed", () => {
  expect(faults({ ...OK, name: "😀".repeat(200) })).toEqual([]);
  expect(faults({ ...OK, name: "😀".repeat(201) })).toHaveLength(1);
});

test("plain addresses pass, whatever their script", () => {
  for (const email of [
    "a@b",
    "ada+x@example.com",
    "ålice@exämple.com",
    "o'hara@example.co.uk",
    "用户@例子.世界",
  ]) {
    expect(faults({ ...OK, email })).toEqual([]);
  }
  for (const email of [
    "a@@b",
    "a@b@c",
    "@b",
    "a@",
    "a b@c",
    "Ada <a@b.c>",
    "a@b,c@d",
    "a@.b",
    "a@b.",
    "a@b..c",
    " a@b",
    "a@b ",
  ]) {
    expect(faults({ ...OK, email })).toHaveLength(1);
  }
});

test("a patch names what it changes, and null is no way to remove a field", () => {
  const patch = new BodySchema(PATCH_BODY);
  expect(faults({}, patch)).toEqual([]);
  expect(faults({ status: "closed" }, patch)).toEqual([]);
  expect(faults({ name: null }, patch)).toEqual([["/name", "must not be null; leave it out instead"]]);
  expect(faults({ status: "open" }, patch)).toEqual([
    ["/status", "must be one of active, suspended, closed"],
  ]);
  expect(faults({ status: 1 }, patch)).toEqual([["/status", "must be one of active, suspended, closed"]]);
});

test("a creation may name the status; a search takes only what it can filter by", () => {
  expect(faults({ ...OK, status: "closed" }, new BodySchema(CREATION_BODY))).toEqual([]);
  const search = new BodySchema(SEARCH_BODY);
  expect(faults({ email: "a@b", fields: ["name"], limit: 5 }, search)).toEqual([]);
  expect(faults({ limit: 501 }, search)).toEqual([["/limit", "must be a whole number from 1 to 500"]]);
  expect(faults({ limit: "5" }, search)).toEqual([["/limit", "must be a whole number from 1 to 500"]]);
  expect(faults({ fields: 1 }, search)).toEqual([
    ["/fields", "must be a comma-separated list of field names, or an array of them"],
  ]);
});

test("a body with thousands of faults is answered with a few", () => {
  const body = Object.fromEntries(Array.from({ length: 5000 }, (_, index) => [`x${index}`, 0]));
  expect(faults({ ...OK, ...body })).toHaveLength(20);
});

test("an answer names a long member in part: it is no echo", () => {
  const [[pointer = ""] = []] = faults({ ...OK, ["x".repeat(60_000)]: 0 });
  expect(pointer).toBe(`/${"x".repeat(127)}…`);
});
