import { expect, test } from "bun:test";
import { settledReason } from "./reason.ts";

const passed = new Set(["IFM-01", "FLD-03"]);

test.each([
  ["nothing could be asserted", "nothing could be asserted"],
  ["answered 503; see IFM-01", "answered 503; IFM-01 passed, so it is not always so"],
  ["a stale PUT was accepted; see IFM-03", "a stale PUT was accepted; see IFM-03"],
  ["answered 200; see FLD-03 and PRB-01", "answered 200; see PRB-01"],
  ["answered 200; see FLD-03 and IFM-01", "answered 200; FLD-03 and IFM-01 passed, so it is not always so"],
])("%s → %s: a reason points to no rule that passed", (reason, settled) => {
  expect(settledReason(reason, passed)).toBe(settled);
});
