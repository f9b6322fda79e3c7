import { expect, test } from "bun:test";
import { changeOf, diff } from "./diff.ts";
import { sampleReport, sampleRule } from "./sample-report.ts";
import type { Outcome } from "./schema.ts";

const rule = (outcome: Outcome | undefined) => (outcome === undefined ? undefined : sampleRule(outcome, 0));

test.each([
  ["pass", "violation", "new"],
  ["could-not-run", "warning", "new"],
  [undefined, "violation", "new"],
  ["violation", "violation", "still broken"],
  ["warning", "violation", "still broken"],
  ["violation", "pass", "mended"],
  ["violation", "could-not-run", "no longer run"],
  ["violation", undefined, "no longer run"],
  ["pass", "not-applicable", "no longer run"],
  ["inconclusive", "pass", "newly run"],
  ["pass", "pass", "same"],
  ["could-not-run", "not-applicable", "same"],
] as const)("%s, then %s: %s", (before, after, change) => {
  expect(changeOf(rule(before), rule(after))).toBe(change);
});

test("each kind of change has its section, with the assertions that moved", () => {
  const older = sampleReport({
    rules: [
      sampleRule("violation", 0),
      sampleRule("violation", 1),
      sampleRule("pass", 2),
      sampleRule("pass", 3),
    ],
  });
  const moved = sampleRule("violation", 0);
  moved.assertions = [{ id: "ETG-01.etag", looked: 1, fired: 1, level: "MUST", detail: null }];
  const newer = sampleReport({ rules: [moved, sampleRule("pass", 1), sampleRule("violation", 2)] });
  const text = diff(older, newer);
  expect(text).toMatch(/New \(1\)\n {2}ORD-03/);
  expect(text).toMatch(/Still broken \(1\)\n {2}ETG-01[\s\S]*\+ETG-01\.etag -ETG-01\.status/);
  expect(text).toMatch(/Mended \(1\)\n {2}IFM-02/);
  expect(text).toMatch(/No longer run \(1\)\n {2}ATM-04[^\n]*\n {4}not selected/);
});

test("two runs with the same outcomes say that nothing changed, and a changed deployment is told", () => {
  const same = sampleReport({ rules: [sampleRule("pass", 0)] });
  expect(diff(same, same)).toContain("Nothing changed");
  const other = { ...same, inferred: [{ point: "casing", value: "camel", evidence: "" }] };
  expect(diff(same, other)).toContain("casing:");
});
