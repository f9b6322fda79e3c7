import { expect, test } from "bun:test";
import fc from "fast-check";
import { drawCustomerId, parseCustomerId } from "./customer-id.ts";

const UUID_V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const millisecondsOf = (id: string): number => Number.parseInt(id.replaceAll("-", "").slice(0, 12), 16);
const anyTime = fc.integer({ min: 0, max: 2 ** 47 });

test("a new id is a UUIDv7 of its time, and greater than the newest whatever that is", () => {
  fc.assert(
    fc.property(anyTime, anyTime, (earlier, later) => {
      const first = drawCustomerId(earlier, null);
      expect(millisecondsOf(first)).toBe(earlier);
      const second = drawCustomerId(later, first);
      expect(second).toMatch(UUID_V7);
      expect(second > first).toBe(true);
      expect(millisecondsOf(second)).toBe(Math.max(earlier, later));
      expect(parseCustomerId(second.toUpperCase())).toBe(second);
    }),
  );
});

test("one past the last of a millisecond is in the next", () => {
  const last = "0193a0c0-0000-7fff-bfff-ffffffffffff";
  const next = drawCustomerId(0, last);
  expect(next).toMatch(/^0193a0c0-0001-7/);
  expect(next > last).toBe(true);
});

test.each([
  "",
  "0193a0c0",
  "0193a0c0-0000-7fff-bfff-fffffffffff",
  "0193a0c0-0000-7fff-bfff-ffffffffffff ",
  "urn:uuid:x",
])("%p is no customer's id", (text) => {
  expect(parseCustomerId(text)).toBeNull();
});
