import { expect, test } from "bun:test";
import fc from "fast-check";
import {
  affixes,
  caseFlips,
  type Form,
  isEntityTag,
  opaque,
  spellings,
  successors,
  visible,
} from "./tag-forms.ts";

const etagc = fc.string({
  unit: fc.constantFrom(..."!#$%&'()*+,-./0189:;<=>?@ABYZ[]^_`abyz{|}~\xe9"),
  maxLength: 24,
});
const tags = etagc.map((text) => `"${text}"`);
const values = (forms: readonly Form[]) => forms.map(({ value }) => value);

test("law: no form equals the tag that it is made of", () => {
  fc.assert(
    fc.property(tags, (tag) => {
      for (const forms of [caseFlips(tag), affixes(tag), spellings(tag), successors(tag)])
        expect(values(forms)).not.toContain(tag);
    }),
  );
});

test("law: what RFC 9110 8.8.3 builds is an entity-tag", () => {
  fc.assert(fc.property(tags, (tag) => expect(isEntityTag(tag)).toBe(true)));
});

test.each(["abc", '"a b"', '"a"b"', "'a'", '"a', 'a"', "", 'w/"a"', '"a\tb"'])(
  "%j is no entity-tag",
  (text) => {
    expect(isEntityTag(text)).toBe(false);
  },
);

test.each([
  ['"1"', "other case", caseFlips, []],
  ['"aB"', "other case", caseFlips, ['"AB"', '"ab"', '"ab"']],
  ['"7"', "spelling of a number", spellings, ['"07"', '"+7"', '"7.0"', '"0x7"', '"%37"']],
  [
    '"AAAAAAAAB9E="',
    "spelling of base64",
    spellings,
    ['"AAAAAAAAB9E"', '"AAAAAAAAB9F="', '"%41AAAAAAAB9E="'],
  ],
  ['"AA+/"', "spelling of base64", spellings, ['"AA-_"', '"%41A+/"']],
  ['"41"', "number beyond", successors, ['"42"', '"1041"']],
  ['"v9"', "number beyond", successors, ['"v10"', '"v1009"']],
  ['"AAAAAAAAB9E="', "version beyond, big and little end", successors, ['"AAAAAAAAB9I="', '"AQAAAAAAB9E="']],
] as const)("of %s the %s is tried", (tag, _, forms, expected) => {
  const made = values(forms(tag));
  for (const form of expected) expect(made).toContain(form);
  if (expected.length === 0) expect(made).toEqual([]);
});

test("a tag with a comma, W/ or a slash inside its quotes is taken whole", () => {
  expect(opaque('"W/a,b/c"')).toBe("W/a,b/c");
  expect(opaque('W/"a"')).toBe("a");
});

test("blanks and invisible bytes are made visible", () => {
  expect(visible(" \ta\x00\xe9")).toBe("·⟨tab⟩a⟨U+0000⟩⟨U+00E9⟩");
});
