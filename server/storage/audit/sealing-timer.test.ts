import { expect, test } from "bun:test";
import { SEALED_MAX } from "./audit-store.ts";
import { SealingTimer, sealBacklog } from "./sealing-timer.ts";

test("a backlog is sealed to its end, and rows that others go on writing meanwhile are not waited for", async () => {
  const left = [SEALED_MAX, SEALED_MAX, 3, 2, 1];
  await sealBacklog({ seal: async () => left.shift() ?? 0 });
  expect(left).toEqual([2, 1]);
});

test("failures in a row are reported once, and again after a sealing that went well", async () => {
  const outcomes = ["a", "b", null, "c", "d"];
  const reported: string[] = [];
  const over = Promise.withResolvers<void>();
  const seal = async (): Promise<number> => {
    const outcome = outcomes.shift() ?? null;
    if (outcomes.length === 0) over.resolve();
    if (outcome !== null) throw new Error(outcome);
    return 0;
  };
  const timer = new SealingTimer({ seal }, (error) => reported.push((error as Error).message), 0);
  await over.promise;
  await timer.stop();
  expect(reported).toEqual(["a", "c"]);
});
