import { expect, test } from "bun:test";
import fc from "fast-check";
import { forEachConcurrently } from "./pool.ts";

async function* stream<Item>(items: Iterable<Item>) {
  yield* items;
}

test("law: every item once, never more than `concurrency` in work, same keys in order", async () => {
  const items = fc.array(fc.record({ key: fc.option(fc.constantFrom("a", "b", "c")), turns: fc.nat(5) }), {
    maxLength: 40,
  });
  await fc.assert(
    fc.asyncProperty(items, fc.integer({ min: 1, max: 6 }), async (rows, concurrency) => {
      const begun: number[] = [];
      const ended: number[] = [];
      let most = 0;
      await forEachConcurrently(stream(rows.entries()), {
        concurrency,
        keyOf: ([, row]) => row.key ?? undefined,
        stopped: () => false,
        async work([index, row]) {
          begun.push(index);
          most = Math.max(most, begun.length - ended.length);
          for (let turn = 0; turn < row.turns; turn += 1) await Promise.resolve();
          ended.push(index);
        },
      });
      expect(ended.toSorted((a, b) => a - b)).toEqual([...rows.keys()]);
      expect(most).toBeLessThanOrEqual(concurrency);
      for (const key of ["a", "b", "c"]) {
        const order = ended.filter((index) => rows[index]?.key === key);
        expect(order).toEqual(order.toSorted((a, b) => a - b));
      }
    }),
    { numRuns: 200 },
  );
});

test("nothing begins after stopping, and what is in work is waited for", async () => {
  const ended: number[] = [];
  let stop = false;
  await forEachConcurrently(stream([1, 2, 3, 4, 5, 6]), {
    concurrency: 2,
    keyOf: () => undefined,
    stopped: () => stop,
    async work(item) {
      await Promise.resolve();
      ended.push(item);
      stop = true;
    },
  });
  expect(ended.length).toBeLessThanOrEqual(2);
  expect(ended.length).toBeGreaterThan(0);
});

test("a bug in the work reaches the caller, after the rest has ended", async () => {
  const ended: number[] = [];
  const run = forEachConcurrently(stream([1, 2, 3]), {
    concurrency: 3,
    keyOf: () => "same",
    stopped: () => false,
    async work(item) {
      if (item === 2) throw new Error("bug");
      ended.push(item);
    },
  });
  await expect(run).rejects.toThrow("bug");
  expect(ended).toEqual([1]);
});

test("a stream that breaks off reaches the caller, after what is in work has ended", async () => {
  const ended: number[] = [];
  async function* breaking() {
    yield 1;
    throw new Error("broken off");
  }
  const run = forEachConcurrently(breaking(), {
    concurrency: 3,
    keyOf: () => undefined,
    stopped: () => false,
    async work(item) {
      for (let turn = 0; turn < 10; turn += 1) await Promise.resolve();
      ended.push(item);
    },
  });
  await expect(run).rejects.toThrow("broken off");
  expect(ended).toEqual([1]);
});
