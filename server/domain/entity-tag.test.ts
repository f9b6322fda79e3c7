import { expect, test } from "bun:test";
import fc from "fast-check";
import { drawRowVersion, formatEntityTag, parseEntityTag, sameRowVersion } from "./entity-tag.ts";

const rowVersion = fc.uint8Array({ minLength: 12, maxLength: 12 });

test("an entity-tag is 16 base64url characters in double quotes, and gives back its row version", () => {
  fc.assert(
    fc.property(rowVersion, (version) => {
      const tag = formatEntityTag(version);
      expect(tag).toMatch(/^"[A-Za-z0-9_-]{16}"$/);
      expect(parseEntityTag(tag)).toEqual(new Uint8Array(version));
    }),
  );
});

test("text and bytes map one to one: only the very tag parses to its version", () => {
  fc.assert(
    fc.property(rowVersion, fc.string({ maxLength: 24 }), (version, text) => {
      const parsed = parseEntityTag(text);
      expect(parsed === null || formatEntityTag(parsed) === text).toBe(true);
      const tag = formatEntityTag(version);
      for (const mangled of [
        `W/${tag}`,
        tag.slice(1),
        `${tag} `,
        ` ${tag}`,
        `${tag},${tag}`,
        `${tag}\n`,
        tag.replace(/"$/, '-gzip"'),
      ]) {
        expect(parseEntityTag(mangled)).toBeNull();
      }
    }),
  );
});

test("row versions are 12 bytes, drawn anew each time", () => {
  const drawn = Array.from({ length: 1000 }, drawRowVersion);
  expect(new Set(drawn.map(formatEntityTag)).size).toBe(1000);
  expect(drawn.every((version) => version.length === 12)).toBe(true);
  const [first, second] = drawn as [Uint8Array, Uint8Array];
  expect(sameRowVersion(first, new Uint8Array(first))).toBe(true);
  expect(sameRowVersion(first, second)).toBe(false);
});
