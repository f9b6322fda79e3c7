import { expect, test } from "bun:test";
import fc from "fast-check";
import { formatJson, type Json, JsonNumber, type JsonObject, jsonEquals } from "../client/json.ts";
import { changedMembers, mergedValue, parseText, renderText, withComments } from "./edit-text.ts";

const scalar: fc.Arbitrary<Json> = fc.oneof(
  fc.string({ unit: "binary" }),
  fc.constantFrom(
    "// no comment",
    "a\n// b",
    null,
    true,
    new JsonNumber("1.10"),
    new JsonNumber("9007199254740993"),
  ),
);
/** Lower case alone: two members that differ in case only are one to a field name. */
const name = fc
  .oneof(fc.string({ unit: "grapheme" }), fc.constantFrom("name", "email", "__proto__", "//"))
  .map((text) => text.toLowerCase());
const object: fc.Arbitrary<JsonObject> = fc
  .array(fc.tuple(name, fc.oneof(scalar, fc.array(scalar, { maxLength: 3 }))), { maxLength: 6 })
  .map((members) => new Map(members.filter(([key]) => key !== "id")));
const comments = fc.array(fc.string({ unit: "binary" }), { maxLength: 4 });

test("law: a text that is left alone changes nothing, whatever the values and the comments", () => {
  fc.assert(
    fc.property(object, comments, (value, lines) => {
      const parsed = parseText(renderText(value, lines), value);
      return (
        parsed.ok &&
        formatJson(parsed.value) === formatJson(value) &&
        changedMembers(value, parsed.value).size === 0
      );
    }),
  );
});

test("law: new comments replace the old ones and leave the text", () => {
  fc.assert(
    fc.property(object, comments, comments, (value, before, after) => {
      return withComments(renderText(value, before), after) === renderText(value, after);
    }),
  );
});

test("law: what was changed, and only that, is the change; on top of theirs it is there and the rest is theirs", () => {
  fc.assert(
    fc.property(object, object, object, (base, edits, theirs) => {
      const edited = new Map([...base, ...edits]);
      const change = changedMembers(base, edited);
      for (const [field, value] of edited) {
        const before = base.get(field);
        expect(change.has(field)).toBe(before === undefined || !jsonEquals(before, value));
      }
      // Members of theirs that a change can't mean: other names even without regard to case.
      const changed = new Set([...change.keys()].map((field) => field.toLowerCase()));
      const merged = mergedValue(theirs, change);
      for (const [field, value] of theirs) {
        if (!changed.has(field.toLowerCase())) expect(merged.get(field)).toBe(value);
      }
      for (const value of change.values()) expect([...merged.values()].includes(value)).toBe(true);
    }),
  );
});

test.each([
  ['{"name":"A","name":"B"}', false],
  ['{"name":"A","tags":{"a":1,"a":2}}', false],
  ['{"name":"A","NAME":"B"}', false],
  ['{"email":"a","Email":"b"}', false],
  ['{"email":"a","Name":"A","status":"B"}', true],
])("a member that appears twice is refused: %s", (text, ok) => {
  const base = new Map([
    ["name", "A"],
    ["email", "a"],
  ]);
  expect(parseText(text, base)).toMatchObject(
    ok ? { ok } : { ok, problem: expect.stringContaining("appears twice") },
  );
});

test("a member that the server itself shows in two ways may stay", () => {
  const shown = new Map([
    ["name", "A"],
    ["Name", "B"],
  ]);
  expect(parseText('{"name":"A","Name":"C"}', shown)).toMatchObject({ ok: true });
});
