import { expect, test } from "bun:test";
import { SEALED_MAX } from "./audit-store.ts";
import { sealBacklog } from "./sealing-timer.ts";

test("a backlog is sealed to its end, and rows that others go on writing meanwhile are not waited for", async () => {
  const left = [SEALED_MAX, SEALED_MAX, 3, 2, 1];
  await sealBacklog({ seal: async () => left.shift() ?? 0 });
  expect(left).toEqual([2, 1]);
});
