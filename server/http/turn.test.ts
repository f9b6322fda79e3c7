import { expect, test } from "bun:test";
import { Turn } from "./turn.ts";

test("a turn is over when it has lasted too long, and the next one begins anew", async () => {
  const turn = new Turn();
  const at = (ms: number) => turn.isOver(1_000 + ms);
  expect([at(0), at(1), at(20)]).toEqual([false, false, false]);
  expect([at(60), at(61)]).toEqual([true, true]);
  await new Promise((next) => setImmediate(next));
  expect([at(62), at(63), at(200)]).toEqual([false, false, true]);
});
