import { expect, test } from "bun:test";
import { comparison } from "./compare.ts";
import { measure } from "./measure.ts";

const throughput = (value: number) => measure("reads", "the ceiling", { atLeast: 0.6 }, [value], "×");
const time = (value: number) => measure("a write", "a peer", { atMost: 1.3 }, [value], "×");
const reported = (value: number) => measure("start", "", null, [value], "ms");

test.each([
  ["less throughput by more than 15 %", throughput(0.5), throughput(0.42), ["reads the ceiling"]],
  ["less throughput by less", throughput(0.5), throughput(0.43), []],
  ["more throughput", throughput(0.5), throughput(0.9), []],
  ["more time by more than 15 %", time(1), time(1.2), ["a write a peer"]],
  ["less time", time(1), time(0.5), []],
] as const)("%s", (_, before, now, worse) => {
  expect(comparison([before, reported(1)], [reported(9), now]).worse).toEqual([...worse]);
});

test("reports without a common measure are refused", () => {
  expect(() => comparison([throughput(1)], [time(1)])).toThrow("no measure in common");
});
