import { expect, test } from "bun:test";
import { openLanes } from "../open-lanes.ts";

test("who waits for a lane past the end of its time is refused with the reason, and nothing is done for it", async () => {
  const pool = openLanes("postgres://u@127.0.0.1:1/x", {}).page;
  const { promise: held, reject: fail } = Promise.withResolvers<never>();
  const done: string[] = [];
  const using = [
    pool.use(() => held),
    pool.use(async () => void done.push("late"), performance.now()),
    pool.use(async () => void done.push("in time")),
  ];
  fail(new Error("the table is locked"));
  const message = "no connection was free in time: the table is locked";
  expect(await Promise.allSettled(using)).toMatchObject([
    { status: "rejected" },
    { status: "rejected", reason: { kind: "never-sent", message } },
    { status: "fulfilled" },
  ]);
  expect(done).toEqual(["in time"]);
  expect([pool.busy, pool.waiting]).toEqual([0, 0]);
});
