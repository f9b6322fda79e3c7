import { expect, test } from "bun:test";
import fc from "fast-check";
import { drawRowVersion, formatEntityTag, parseEntityTag } from "./entity-tag.ts";

test("row versions are 16 base64url characters, drawn anew each time", () => {
  const drawn = Array.from({ length: 1000 }, drawRowVersion);
  expect(new Set(drawn).size).toBe(1000);
  for (const version of drawn) expect(version).toMatch(/^[A-Za-z0-9_-]{16}$/);
});

test("each of their 96 bits is drawn: none is the same in a thousand", () => {
  const drawn = Array.from({ length: 1000 }, () => [...Buffer.from(drawRowVersion(), "base64url")]);
  for (let bit = 0; bit < 96; bit += 1) {
    const ones = drawn.filter((bytes) => ((bytes[bit >> 3] ?? 0) >> (bit & 7)) & 1).length;
    expect(ones).toBeGreaterThan(0);
    expect(ones).toBeLessThan(1000);
  }
});

test("an entity-tag is the row version in double quotes, and gives it back", () => {
  const version = drawRowVersion();
  expect(formatEntityTag(version)).toBe(`"${version}"`);
  expect(parseEntityTag(formatEntityTag(version))).toBe(version);
});

test("only the very tag parses to its version", () => {
  fc.assert(
    fc.property(fc.string({ maxLength: 24 }), (text) => {
      const parsed = parseEntityTag(text);
      expect(parsed === null || formatEntityTag(parsed) === text).toBe(true);
      const tag = formatEntityTag(drawRowVersion());
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
