import { expect, test } from "bun:test";
import { sampleReport, sampleRule } from "../tests/sample-report.ts";
import { changeOf, diff, gateExitCode } from "./diff.ts";
import type { Outcome } from "./schema.ts";

const rule = (outcome: Outcome | undefined) => (outcome === undefined ? undefined : sampleRule(outcome, 0));

test.each([
  ["pass", "violation", "new"],
  ["could-not-run", "warning", "new"],
  [undefined, "violation", "new"],
  ["violation", "violation", "still broken"],
  ["warning", "violation", "still broken"],
  ["violation", "pass", "fixed"],
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
  expect(text).toMatch(/Fixed \(1\)\n {2}IFM-02/);
  expect(text).toMatch(/No longer run \(1\)\n {2}ATM-04[^\n]*\n {4}not selected/);
});

test("two runs with the same outcomes say that nothing changed, and a changed deployment is told", () => {
  const same = sampleReport({ rules: [sampleRule("pass", 0)] });
  expect(diff(same, same)).toContain("Nothing changed");
  const other = { ...same, inferred: [{ point: "casing", value: "camel", evidence: "" }] };
  expect(diff(same, other)).toContain("casing:");
});

const EXPECTED = { reason: "ticket", owner: "team", until: "2999-12-31" };

test.each([
  ["a known violation stays", "violation", "violation", {}, 0],
  ["a violation is fixed", "violation", "pass", {}, 0],
  ["a rule is newly violated", "pass", "violation", {}, 1],
  ["a rule that was not tested is violated", "could-not-run", "violation", {}, 1],
  ["a warning became a violation", "warning", "violation", {}, 1],
  ["a new violation is expected", "pass", "violation", { expected: EXPECTED }, 0],
  ["a warning is new", "pass", "warning", {}, 0],
  ["what was tested no longer is", "pass", "could-not-run", {}, 3],
  ["what was violated is no longer tested", "violation", "inconclusive", {}, 3],
] as const)("gate: %s", (_, before, after, change, code) => {
  const run = (outcome: Outcome, more: object = {}) =>
    sampleReport({ rules: [{ ...sampleRule(outcome, 0), ...more }], verdict: "violates", exitCode: 1 });
  expect(gateExitCode(run(before), run(after, change))).toBe(code);
});

test.each([
  ["unreachable", 4],
  ["kit-fault", 5],
  ["fixtures-left", 6],
  ["interrupted", 130],
] as const)("gate: a newer run that ended %s is never green", (verdict, exitCode) => {
  const same = sampleReport({ rules: [sampleRule("pass", 0)], verdict: "conforms", exitCode: 0 });
  expect(gateExitCode(same, { ...same, verdict, exitCode })).toBe(exitCode);
});
