import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { Json, JsonObject } from "../client/json.ts";
import { displayWidth, truncate } from "./display-width.ts";
import { formatRecord, formatTable } from "./table.ts";

const plain = (columns?: number) => ({ color: false, columns });
const row = (members: Record<string, Json>): JsonObject => new Map(Object.entries(members));

describe("a table", () => {
  test("aligns by display width, and leaves an absent member blank", () => {
    const rows = [
      row({ id: "1", name: "漢字", note: "x" }),
      row({ id: "22", name: "e\u0301" }),
      row({ id: "3", extra: true }),
    ];
    expect(formatTable(rows, plain())).toBe(
      "id  name  note  extra\n" + "1   漢字  x\n" + "22  e\u0301\n" + "3               true\n",
    );
  });

  test("fits the terminal by cutting the widest, never an id or a tag", () => {
    const id = "0193a1b2-0000-7000-8000-000000000000";
    const text = formatTable(
      [row({ etag: '"0123456789abcdef"', id, name: "x".repeat(60), email: "y".repeat(20) })],
      plain(80),
    );
    expect(text).toContain(id);
    expect(text).toContain('"0123456789abcdef"');
    expect(text).toContain("…");
    expect(Math.max(...text.split("\n").map(displayWidth))).toBeLessThanOrEqual(80);
  });

  test("is one line a row, with nothing in it that steers a terminal, whatever the data", () => {
    const anyText = fc.string({ unit: "binary" });
    fc.assert(
      fc.property(
        fc.array(fc.dictionary(anyText, anyText), { minLength: 1, maxLength: 4 }),
        fc.integer({ min: 1, max: 100 }),
        (rows, columns) => {
          const text = formatTable(rows.map(row), plain(columns));
          expect(text.split("\n")).toHaveLength(rows.length + 2);
          // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what must not be there
          expect(text).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/);
        },
      ),
    );
  });
});

test("a record is a line a member", () => {
  expect(formatRecord(row({ id: "1", longer: "a\nb", gone: null }), plain())).toBe(
    "id      1\nlonger  a\\nb\ngone\n",
  );
});

test("cutting keeps graphemes whole and never exceeds the width", () => {
  expect(truncate("👩‍👩‍👧👩‍👩‍👧", 3)).toBe("👩‍👩‍👧…");
  fc.assert(
    fc.property(fc.string({ unit: "grapheme" }), fc.integer({ min: 1, max: 40 }), (text, columns) => {
      expect(displayWidth(truncate(text, columns))).toBeLessThanOrEqual(columns);
    }),
  );
});
