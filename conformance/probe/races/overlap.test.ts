import { expect, test } from "bun:test";
import { overlapOf } from "./overlap.ts";

type Timed = Parameters<typeof overlapOf>[0][number][number];

const request = (sentMs: number, answeredMs: number, more: Partial<Timed> = {}): Timed => ({
  outcome: "lost",
  early: false,
  sentMs,
  answeredMs,
  ...more,
});

test.each([
  ["two at once", [request(0, 3), request(1, 4)], { overlapped: 1, gapMs: 1, early: 0 }],
  ["one after the other", [request(0, 1), request(1, 4)], { overlapped: 0, gapMs: 1, early: 0 }],
  [
    "an answer before its request was complete is no part of the race",
    [request(0, 3, { early: true }), request(1, 4)],
    { overlapped: 0, gapMs: null, early: 1 },
  ],
  [
    "all answers came before their requests were complete",
    [request(0, 3, { early: true }), request(1, 4, { early: true })],
    { overlapped: 0, gapMs: null, early: 2 },
  ],
  [
    "an unknown outcome is no part of the race",
    [request(0, 3, { outcome: "unknown" }), request(1, 4)],
    { overlapped: 0, gapMs: null, early: 0 },
  ],
  [
    "two at once, and an early one",
    [request(0, 1, { early: true }), request(2, 4), request(3, 5)],
    { overlapped: 1, gapMs: 1, early: 1 },
  ],
])("%s", (_, round, expected) => {
  expect(overlapOf([round])).toEqual(expected);
});

test("the gap is the median of the rounds", () => {
  const rounds = [1, 9, 5].map((gap) => [request(0, 10), request(gap, 10)]);
  expect(overlapOf(rounds)).toEqual({ overlapped: 3, gapMs: 5, early: 0 });
});
