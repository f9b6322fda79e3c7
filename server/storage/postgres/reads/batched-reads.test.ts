import { expect, test } from "bun:test";
import { openLanes } from "../open-lanes.ts";
import { BatchedReads } from "./batched-reads.ts";

test("a look-up whose time is up before a lane is free is refused, and is not sent", async () => {
  // A server that cannot be reached: what is sent fails otherwise.
  const pool = openLanes("postgres://u@127.0.0.1:1/x", {}).page;
  const reads = new BatchedReads({ pool, giveUpMs: 0, pendingMax: 10, onBatch: () => {}, onRetry: () => {} });
  const looked = [reads.find("SELECT 1", ["a"]), reads.findShared("SELECT 2", "b")];
  const reason = { name: "StoreUnavailable", message: expect.stringContaining("in time") };
  expect(await Promise.allSettled(looked)).toMatchObject([{ reason }, { reason }]);
});
