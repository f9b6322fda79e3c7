import { expect, test } from "bun:test";
import fc from "fast-check";
import { count } from "../outcome/amount.ts";
import { type Progress, progressBar, progressLine } from "./progress.ts";

const halfway: Progress = { done: 60_000, before: 10_000, total: 110_000, conflicts: 3, failed: 1 };

test("the bar tells done, rate, time left, conflicts and failures; rows of an earlier run don't count for the rate", () => {
  expect(progressBar(halfway, 10_000, 120)).toBe(
    "[################--------------] 60,000 of 110,000 · 5,000/s · 10 s left · 3 conflicts · 1 failed",
  );
});

test("the line says the same in words", () => {
  expect(progressLine("rows", halfway, 10_000)).toBe(
    "60,000 of 110,000 rows, 5,000/s, 10 s left, 3 conflicts, 1 failed",
  );
});

test("where no total is known, none is made up", () => {
  const progress = { ...halfway, total: undefined, conflicts: 0, failed: 0 };
  expect(progressBar(progress, 10_000, 80)).toBe("60,000 · 5,000/s");
  expect(progressLine("customers", progress, 10_000)).toBe("60,000 customers, 5,000/s");
});

test.each([
  [59_000, "59 s left"],
  [61_000, "2 min left"],
  [3_700_000, "1 h 2 min left"],
])("%p ms left are told as %p", (leftMs, expected) => {
  const progress: Progress = { done: 1, before: 0, total: 1 + leftMs / 1000, conflicts: 0, failed: 0 };
  expect(progressBar(progress, 1000, 80)).toContain(expected);
});

test("law: a bar never wraps, whatever the terminal and the numbers", () => {
  const amounts = { done: fc.nat(), before: fc.nat(), conflicts: fc.nat(), failed: fc.nat() };
  fc.assert(
    fc.property(
      fc.record({ ...amounts, total: fc.option(fc.nat(), { nil: undefined }) }),
      fc.nat(),
      fc.integer({ min: 1, max: 200 }),
      (progress, elapsedMs, columns) => {
        const done = Math.min(progress.done, progress.total ?? progress.done);
        const before = Math.min(progress.before, done);
        return progressBar({ ...progress, done, before }, elapsedMs, columns).length < Math.max(columns, 1);
      },
    ),
  );
});

test("thousands are set apart", () => {
  expect([0, 999, 1000, 1_234_567].map(count)).toEqual(["0", "999", "1,000", "1,234,567"]);
});
