import { expect, test } from "bun:test";
import { sampleReport, sampleRule } from "../../tests/sample-report.ts";
import { OUTCOMES } from "../schema.ts";
import { junit } from "./junit.ts";

const caseOf = (xml: string, name: string): string =>
  new RegExp(`<testcase [^>]*name="${name}[\\s\\S]*?(?:/>|</testcase>)`).exec(xml)?.[0] ?? "";

test.each([
  ["pass", /^<testcase [^>]*\/>$/],
  ["violation", /<failure /],
  ["warning", /<system-out>/],
  ["not-applicable", /<skipped /],
  ["could-not-run", /<error [^>]*type="could-not-run"/],
  ["inconclusive", /<error [^>]*type="inconclusive"/],
  ["kit-error", /<error [^>]*type="kit-error"/],
] as const)("a rule that ended as %s reads so", (outcome, pattern) => {
  const rule = sampleRule(outcome, OUTCOMES.indexOf(outcome));
  expect(caseOf(junit(sampleReport()), rule.id)).toMatch(pattern);
});

test("what could not run is skipped only where incompleteness is allowed", () => {
  const report = sampleReport();
  const allowed = junit({ ...report, options: { ...report.options, allowIncomplete: true } });
  expect(caseOf(allowed, sampleRule("could-not-run", OUTCOMES.indexOf("could-not-run")).id)).toContain(
    "<skipped ",
  );
});

test("an expected violation is skipped with its reason, owner and date", () => {
  const rule = {
    ...sampleRule("violation", 1),
    expected: { reason: "ticket", owner: "team", until: "2027-01-01" },
  };
  expect(caseOf(junit(sampleReport({ rules: [rule] })), rule.id)).toMatch(
    /<skipped message="expected until 2027-01-01 \(team\): ticket"/,
  );
});

test("a run that ends with another code than 0 has a failing case, even when no rule failed", () => {
  const xml = junit(
    sampleReport({ rules: [sampleRule("could-not-run", 0)], exitCode: 4, verdict: "unreachable" }),
  );
  expect(caseOf(xml, "verdict")).toContain("<failure ");
  expect(
    caseOf(junit(sampleReport({ rules: [sampleRule("pass", 0)], exitCode: 0 })), "verdict"),
  ).not.toContain("<failure");
});

test("the totals are those of the cases, and no character stands in it that XML forbids", () => {
  const xml = junit(sampleReport());
  const total = (name: string) => Number(new RegExp(`<testsuites [^>]*\\b${name}="(\\d+)"`).exec(xml)?.[1]);
  expect(total("tests")).toBe(xml.match(/<testcase /g)?.length ?? 0);
  expect(total("failures")).toBe(xml.match(/<failure /g)?.length ?? 0);
  expect(total("errors")).toBe(xml.match(/<error /g)?.length ?? 0);
  expect(total("skipped")).toBe(xml.match(/<skipped /g)?.length ?? 0);
  expect(xml).not.toMatch(/[^\t\n\r -\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/u);
  expect(xml).not.toContain("<script");
});
