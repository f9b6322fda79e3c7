import { expect, test } from "bun:test";
import { EventLoopTurn } from "./event-loop-turn.ts";

/** Whether the turn is too long at the last of so many requests, which come within so many milliseconds. */
function atLast(turn: EventLoopTurn, requests: number, ms: number): boolean {
  let isTooLong = false;
  for (let n = 1; n <= requests; n += 1) isTooLong = turn.isTooLong(1_000 + (ms * n) / requests);
  return isTooLong;
}

test.each([
  ["many requests in a short time", 1_000, 20, false],
  ["few requests in a long time, as on a busy machine", 10, 5_000, false],
  ["many requests in a long time: a storm", 1_000, 200, true],
])("a turn of %s", async (_, requests, ms, isTooLong) => {
  const turn = new EventLoopTurn();
  expect(atLast(turn, requests, ms)).toBe(isTooLong);
  await new Promise((next) => setImmediate(next));
  // The next one starts afresh.
  expect(atLast(turn, 65, 1)).toBe(false);
});
