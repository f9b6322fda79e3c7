import { expect, test } from "bun:test";
import { TEST_ORIGIN } from "../../../tests/support/service/test-origin.ts";
import { openLanes } from "../open-lanes.ts";
import { createOf, removeOf } from "./customer-kinds.ts";
import { WriteBatches } from "./write-batches.ts";

test("a write whose time is up before a batch takes it is refused, and is not sent", async () => {
  // A server that cannot be reached: what is sent fails otherwise.
  const lanes = openLanes("postgres://u@127.0.0.1:1/x", { limits: { giveUpMs: 0 } });
  const writes = new WriteBatches({
    lanes: lanes.page,
    slowLanes: lanes.slow,
    batchesMax: 1,
    giveUpMs: 0,
    pendingMax: 10,
    onCommit: () => {},
    onRetry: () => {},
  });
  const target = { tenant: "t", id: crypto.randomUUID(), expected: { anyExcept: [] } };
  const removal = writes.run(removeOf(target, null, TEST_ORIGIN));
  const creation = writes.run(
    createOf("t", { name: "A", email: "a@b", status: "active" }, 0, null, TEST_ORIGIN),
  );
  const settled = await Promise.allSettled([removal, creation]);
  const reason = { name: "StoreUnavailable", message: expect.stringContaining("in time") };
  expect(settled).toMatchObject([
    { status: "rejected", reason },
    { status: "rejected", reason },
  ]);
  expect(writes.depth).toBe(0);
  await writes.close();
});
