import { expect, test } from "bun:test";
import { retryDelayMs } from "./persistence.ts";
import { type FailureKind, kindOf } from "./statement-failure.ts";

test.each<[string, string | null, FailureKind]>([
  ["ERR_POSTGRES_CONNECTION_REFUSED", null, "never-sent"],
  ["ERR_POSTGRES_CONNECTION_TIMEOUT", null, "never-sent"],
  ["ERR_POSTGRES_CONNECTION_CLOSED", null, "unknown"],
  ["ERR_POSTGRES_SERVER_ERROR", "57P01", "unknown"],
  ["ERR_POSTGRES_SERVER_ERROR", "57P03", "never-sent"],
  ["ERR_POSTGRES_SERVER_ERROR", "28P01", "never-sent"],
  ["ERR_POSTGRES_SERVER_ERROR", "53300", "never-sent"],
  ["ERR_POSTGRES_SERVER_ERROR", "53100", "rolled-back"],
  ["ERR_POSTGRES_SERVER_ERROR", "40001", "rolled-back"],
  ["ERR_POSTGRES_SERVER_ERROR", "57014", "rolled-back"],
  ["ERR_POSTGRES_SERVER_ERROR", "25006", "rolled-back"],
  ["ERR_POSTGRES_SERVER_ERROR", "08006", "unknown"],
  ["ERR_POSTGRES_SERVER_ERROR", "XX000", "unknown"],
  ["ERR_POSTGRES_SERVER_ERROR", "23502", "refused"],
  ["ERR_POSTGRES_SERVER_ERROR", "22021", "refused"],
])("%s with SQLSTATE %s is %s", (code, sqlState, kind) => {
  expect(kindOf(code, sqlState)).toBe(kind);
});

test("a repetition waits longer each time, 200 ms at most, and never all at the same moment", () => {
  const longest = [1, 2, 3, 6, 50, 1_000].map((tries) => retryDelayMs(tries, 1));
  expect(longest).toEqual([10, 20, 40, 200, 200, 200]);
  expect(retryDelayMs(3, 0.5)).toBe(20);
});
