import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { BACK_OFF_FIRST_MS, BACK_OFF_MAX_MS, backOffMs, retryAfterMs } from "./retry-timing.ts";

describe("back-off", () => {
  test("is anything from 0 to a bound that doubles from 50 ms to 2 s", () => {
    const bound = (attempt: number) => backOffMs(attempt, 1);
    expect([1, 2, 3, 6, 7, 50].map(bound)).toEqual([50, 100, 200, 1600, 2000, 2000]);
    fc.assert(
      fc.property(
        fc.integer({ min: -5, max: 2000 }),
        fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
        (attempt, random) => {
          const ms = backOffMs(attempt, random);
          expect(ms).toBeGreaterThanOrEqual(0);
          expect(ms).toBeLessThanOrEqual(
            Math.min(BACK_OFF_MAX_MS, BACK_OFF_FIRST_MS * 2 ** Math.max(0, attempt - 1)),
          );
        },
      ),
    );
  });
});

describe("Retry-After", () => {
  const now = Date.UTC(2026, 10, 27, 22, 0, 0);
  test.each([
    ["0", 0],
    ["3", 3000],
    [" 120 ", 120_000],
    ["Fri, 27 Nov 2026 22:00:05 GMT", 5000],
    ["Friday, 27-Nov-26 22:00:05 GMT", 5000],
    ["Fri Nov 27 22:00:05 2026", 5000],
    ["Fri Nov  6 22:00:05 2026", 0],
    ["Fri, 27 Nov 2026 21:00:00 GMT", 0],
    ["", undefined],
    ["soon", undefined],
    ["-1", undefined],
    ["1.5", undefined],
    ["Friday", undefined],
    [undefined, undefined],
  ])("%p is %p ms", (header, ms) => {
    expect(retryAfterMs(header, now)).toBe(ms as number);
  });
});
