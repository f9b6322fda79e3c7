import { expect, test } from "bun:test";
import { EventLoopTurn } from "./event-loop-turn.ts";

test("a turn that has lasted too long should end, and the next one starts afresh", async () => {
  const turn = new EventLoopTurn();
  const at = (ms: number) => turn.isTooLong(1_000 + ms);
  expect([at(0), at(1), at(20)]).toEqual([false, false, false]);
  expect([at(60), at(61)]).toEqual([true, true]);
  await new Promise((next) => setImmediate(next));
  expect([at(62), at(63), at(200)]).toEqual([false, false, true]);
});
