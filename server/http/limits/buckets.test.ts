import { expect, test } from "bun:test";
import { Buckets } from "./buckets.ts";

test("a table that is full forgets the buckets that are full, and no other while that is enough", () => {
  const buckets = new Buckets(4);
  for (const [holder, fullAtMs] of [
    ["full", 100],
    ["empty", 900],
    ["full too", 200],
    ["half", 500],
  ] as const)
    buckets.set(holder, fullAtMs, 0);
  buckets.set("new", 600, 200);
  expect(["full", "full too", "empty", "half", "new"].map((holder) => buckets.fullAtMs(holder))).toEqual([
    undefined,
    undefined,
    900,
    500,
    600,
  ]);
});

test("however many holders come, no more buckets are kept than may be", () => {
  const buckets = new Buckets(100);
  for (let holder = 0; holder < 10_000; holder += 1) {
    buckets.set(`holder ${holder}`, 1_000_000, 0);
    expect(buckets.size).toBeLessThanOrEqual(100);
  }
  expect(buckets.fullAtMs("holder 9999")).toBe(1_000_000);
});

test("where no bucket is full, those that were drawn from last are kept", () => {
  const buckets = new Buckets(4);
  for (const holder of ["busy", "a", "b", "c", "busy"]) buckets.set(holder, 900, 0);
  buckets.set("new", 900, 0);
  expect(buckets.fullAtMs("busy")).toBe(900);
});
