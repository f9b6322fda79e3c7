import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { draw, type Quota } from "./token-bucket.ts";

/** Draws at each of these times. @returns what was drawn when */
function drawAt(quota: Quota, timesMs: readonly number[]) {
  let fullAtMs = 0;
  return timesMs.map((nowMs) => {
    const drawn = draw(fullAtMs, quota, nowMs);
    fullAtMs = drawn.fullAtMs;
    return { nowMs, ...drawn };
  });
}

const QUOTA = { perSecond: 2, burst: 3 };

test("a burst is drawn at once, and then one as soon as it has come in again", () => {
  const drawn = drawAt(QUOTA, [1000, 1000, 1000, 1000, 1499, 1500, 1500]);
  expect(drawn.map(({ remaining, waitMs }) => [remaining, Math.round(waitMs)])).toEqual([
    [2, 0],
    [1, 0],
    [0, 0],
    [0, 500],
    [0, 1],
    [0, 0],
    [0, 500],
  ]);
});

test("a refused draw takes nothing", () => {
  const refused = Array.from({ length: 100 }, () => 1000);
  const drawn = drawAt(QUOTA, [1000, 1000, 1000, ...refused, 1500]);
  expect(drawn.at(-1)?.waitMs).toBe(0);
});

test("after a pause the bucket is full, and not fuller", () => {
  const drawn = drawAt(QUOTA, [1000, 1000, 1000, 3_600_000, 3_600_000, 3_600_000, 3_600_000]);
  expect(drawn.slice(3).map(({ remaining }) => remaining)).toEqual([2, 1, 0, 0]);
  expect(drawn.at(-1)?.waitMs).toBeGreaterThan(0);
});

describe("what was drawn before", () => {
  test("a quota was raised counts as an empty bucket of the new one at most", () => {
    const [, last] = drawAt({ perSecond: 0.001, burst: 2 }, [1000, 1000]);
    const { waitMs } = draw(last?.fullAtMs ?? 0, { perSecond: 100, burst: 5 }, 1000);
    expect(Math.round(waitMs)).toBe(10);
  });

  test("a clock was set back counts as an empty bucket at most", () => {
    const [first] = drawAt(QUOTA, [3_600_000]);
    expect(Math.round(draw(first?.fullAtMs ?? 0, QUOTA, 1000).waitMs)).toBe(500);
  });
});

const quotas = fc.record({
  perSecond: fc.double({ min: 0.01, max: 10_000, noNaN: true }),
  burst: fc.integer({ min: 1, max: 1000 }),
});
const pauses = fc.array(fc.integer({ min: 0, max: 5000 }), { minLength: 1, maxLength: 200 });

test("in no stretch of time is more drawn than the burst and what comes in meanwhile", () => {
  fc.assert(
    fc.property(quotas, pauses, (quota, between) => {
      let nowMs = 0;
      const times = between.map((pauseMs) => {
        nowMs += pauseMs;
        return nowMs;
      });
      const drawn = drawAt(quota, times).filter(({ waitMs }) => waitMs === 0);
      drawn.forEach((first, at) => {
        for (let count = 1; at + count <= drawn.length; count += 1) {
          const last = drawn[at + count - 1] ?? first;
          const most = quota.burst + ((last.nowMs - first.nowMs) / 1000) * quota.perSecond;
          expect(count).toBeLessThanOrEqual(most + 1e-3);
        }
      });
    }),
    { numRuns: 50 },
  );
});

test("a caller who waits as long as it is asked to gets one", () => {
  fc.assert(
    fc.property(quotas, fc.integer({ min: 1, max: 50 }), (quota, times) => {
      let fullAtMs = 0;
      let nowMs = 1000;
      for (let time = 0; time < quota.burst + times; time += 1) {
        let drawn = draw(fullAtMs, quota, nowMs);
        if (drawn.waitMs > 0) {
          nowMs += drawn.waitMs;
          drawn = draw(drawn.fullAtMs, quota, nowMs);
        }
        expect(drawn.waitMs).toBe(0);
        fullAtMs = drawn.fullAtMs;
      }
    }),
    { numRuns: 50 },
  );
});
