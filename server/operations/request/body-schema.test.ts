import { describe, expect, test } from "bun:test";
import { CREATION_BODY, PATCH_BODY, REPLACEMENT_BODY, SEARCH_BODY } from "../../domain/customer/customer.ts";
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
    [{ ...OK, name: "" }, [["/name", "must not be blank"]]],
    [{ ...OK, name: "   " }, [["/name", "must not be blank"]]],
    [{ ...OK, name: "x".repeat(201) }, [["/name", "must have at most 200 characters; it has 201"]]],
    [
      { ...OK, name: "\n".repeat(1_601) },
      [["/name", "must have at most 200 characters; it has more than 800"]],
    ],
    [
      { ...OK, email: "\ud83d\ude00".repeat(1_017) },
      [["/email", "must have 3 to 254 characters; it has more than 1016"]],
    ],
    [{ ...OK, name: "a\u0000b" }, [["/name", "must not have control characters or line separators"]]],
    [{ ...OK, name: "a\nb" }, [["/name", "must not have control characters or line separators"]]],
    [{ ...OK, name: "\ud800" }, [["/name", "must be well-formed Unicode; it has a lone surrogate"]]],
    [{ ...OK, email: "a" }, [["/email", "must have 3 to 254 characters; it has 1"]]],
    [{ ...OK, email: `${"a".repeat(250)}@b.cd` }, [["/email", "must have 3 to 254 characters; it has 255"]]],
    [
      { ...OK, email: "a.b.c" },
      [
        [
          "/email",
          "must be one address of the form local@domain, without spaces, quotes, brackets or a display name",
        ],
      ],
    ],
    [{ ...OK, status: "active" }, [["/status", "is an unknown property; choose from id, name, email"]]],
    [{ ...OK, Name: "x" }, [["/Name", "is an unknown property; did you mean `name`?"]]],
    [{ ...OK, emial: "x" }, [["/emial", "is an unknown property; did you mean `email`?"]]],
    [{ ...OK, "a/b~c": "x" }, [["/a~1b~0c", "is an unknown property; choose from id, name, email"]]],
    [
      JSON.parse('{"name":"x","email":"a@b","__proto__":{}}'),
      [["/__proto__", "is an unknown property; choose from id, name, email"]],
    ],
  ])("%j", (body, expected) => {
    expect(faults(body)).toEqual(expected as [string, string][]);
  });
});

test("lengths count code points: 200 of a name that takes two UTF-16 units each are allowed", () => {
  expect(faults({ ...OK, name: "😀".repeat(200) })).toEqual([]);
  expect(faults({ ...OK, name: "😀".repeat(201) })).toHaveLength(1);
});

const BIDI = [0x61c, 0x200e, 0x200f, 0x202a, 0x202e, 0x2066, 0x2069].map((code) =>
  String.fromCodePoint(code),
);

describe("a name is any text that shows something and reorders nothing", () => {
  test.each(["  Ada  ", "\u00a0Ada", "a", "e\u0301", "👩‍👩‍👧", "محمد", "می‌خواهم", "x".repeat(200)])(
    "%j passes",
    (name) => {
      expect(replacement.read({ ...OK, name })).toEqual({ ok: true, value: { ...OK, name } });
    },
  );
  test.each(["", " ", "\u00a0\u2003", "\u200b", "\u2060\ufeff", "\u00ad", "\u3164", "\u2800 "])(
    "%j is blank",
    (name) => {
      expect(faults({ ...OK, name })).toEqual([["/name", "must not be blank"]]);
    },
  );
  test.each(["\u0000", "\n", "\u007f", "\u0085", "\u2028", "\u2029", "\ud800", ...BIDI])(
    "%j in it is refused",
    (part) => {
      expect(faults({ ...OK, name: `a${part}b` })).toHaveLength(1);
    },
  );
  test("with blanks around it counts them", () => {
    expect(faults({ ...OK, name: `${"x".repeat(200)} ` })).toHaveLength(1);
  });
});

describe("an address is one that mail can be sent to", () => {
  test.each([
    "a@b",
    "ada+x@example.com",
    "ada.lovelace@example.com",
    "!#$%&'*+-/=?^_`{|}~@example.com",
    "ålice@exämple.com",
    "o'hara@example.co.uk",
    "用户@例子.世界",
    "x@1-2.3com",
    "x@xn--bcher-kva.example",
    `${"a".repeat(64)}@example.com`,
    `a@${"b".repeat(63)}.com`,
  ])("%s", (email) => {
    expect(faults({ ...OK, email })).toEqual([]);
  });

  test.each([
    "a@@b",
    "a@b@c",
    "@b",
    "a@",
    "a b@c",
    "Ada <a@b.c>",
    "a@b,c@d",
    '"a b"@c.d',
    "a@[192.0.2.1]",
    " a@b",
    "a@b ",
    // The local part is a dot-atom.
    ".a@b.c",
    "a.@b.c",
    "a..b@c.d",
    ".@b.c",
    `${"a".repeat(65)}@example.com`,
    `${"é".repeat(33)}@example.com`,
    // The domain is a host name.
    "a@.b",
    "a@b.",
    "a@b..c",
    "a@-b.c",
    "a@b-.c",
    "a@b.-c",
    "a@b.c-",
    "a@-",
    "a@b_c.d",
    "a@b.c!",
    "a@192.0.2.1",
    "a@b。c",
    `a@${"b".repeat(64)}.com`,
    ...BIDI.map((control) => `a${control}@b.c`),
  ])("not %j", (email) => {
    expect(faults({ ...OK, email })).toHaveLength(1);
  });
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
  expect(faults({ limit: 501 }, search)).toEqual([["/limit", "must be an integer from 1 to 500"]]);
  expect(faults({ limit: "5" }, search)).toEqual([["/limit", "must be an integer from 1 to 500"]]);
  expect(faults({ fields: 1 }, search)).toEqual([
    ["/fields", "must be a comma-separated list of field names, or an array of at most 64"],
  ]);
  expect(faults({ cursor: null }, search)).toEqual([]);
  expect(faults({ cursor: 1 }, search)).toEqual([["/cursor", "must be a string or null"]]);
});

test("a body with thousands of faults is answered with a few", () => {
  const body = Object.fromEntries(Array.from({ length: 5000 }, (_, index) => [`x${index}`, 0]));
  expect(faults({ ...OK, ...body })).toHaveLength(20);
});

test("an answer repeats only the beginning of a long property", () => {
  const [[pointer = ""] = []] = faults({ ...OK, ["x".repeat(60_000)]: 0 });
  expect(pointer).toBe(`/${"x".repeat(127)}…`);
});
