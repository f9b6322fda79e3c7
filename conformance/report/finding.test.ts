import { expect, test } from "bun:test";
import { sampleReport, sampleRule } from "../tests/sample-report.ts";
import { findingText, groupsByReason, LABELS } from "./finding.ts";
import { html } from "./renderers/html/html.ts";
import { junit } from "./renderers/junit.ts";
import { markdown } from "./renderers/markdown.ts";
import { sarif } from "./renderers/sarif.ts";
import { terminal } from "./renderers/terminal.ts";
import type { Report, RuleResult } from "./schema.ts";

const RENDERERS = {
  terminal: (rule: RuleResult) => terminal(sampleReport({ rules: [rule] }), { color: false, width: 400 }),
  junit: (rule: RuleResult) => junit(sampleReport({ rules: [rule] })),
  sarif: (rule: RuleResult) => sarif(sampleReport({ rules: [rule] })),
  markdown: (rule: RuleResult) => markdown(sampleReport({ rules: [rule] })),
  html: (rule: RuleResult) => html(sampleReport({ rules: [rule] })),
};

const known = { reason: "ticket", owner: "team", until: "2999-12-31" };
const rule = { ...sampleRule("violation", 1), expected: known };

test("a finding uses every label, and no other", () => {
  const used = findingText(rule).map((line) => line.slice(0, line.indexOf(":")));
  expect([...new Set(used)].sort()).toEqual([...LABELS].sort());
});

// The terminal names the request in its title line, and the page the finding in its summary.
const ELSEWHERE: Record<string, string> = { terminal: "request", html: "found" };

test.each(Object.entries(RENDERERS))("%s speaks of a finding in the same words", (name, draw) => {
  const text = draw(rule);
  for (const label of LABELS.filter((each) => each !== ELSEWHERE[name]))
    expect(text).toMatch(new RegExp(`(?:\\b|\\\\n)${label}(?::| {2,}|</dt>)`));
  // Words of earlier reports that had to be deciphered.
  expect(text).not.toMatch(/\b(?:twin|mend|mended|odd in it|told)\b/i);
});

test.each(Object.entries(RENDERERS))("%s shows a blank at the end of a header as ·", (_, draw) => {
  expect(draw(rule)).toMatch(/W\/(?:"|&quot;|\\")3(?:"|&quot;|\\")·/);
});

test("reasons are grouped, the largest group first, a whole family by its name", () => {
  const of = (n: number, reason: string): RuleResult => ({
    ...sampleRule("could-not-run", n),
    id: `MET-0${n}`,
    family: "MET",
    reason,
  });
  const metrics = [1, 2, 3].map((n) => of(n, "no metrics URL (--metrics-url)"));
  const other = [{ ...sampleRule("inconclusive", 1), reason: "moved" }];
  const all = [...other, ...metrics, sampleRule("pass", 1)];
  const groups = groupsByReason([...other, ...metrics], all);
  expect(groups.map(({ reason, names }) => [reason, names.join(" ")])).toEqual([
    ["no metrics URL (--metrics-url)", "MET"],
    ["moved", "IFM-02"],
  ]);
});

const WHOLE = {
  terminal: (report: Report) => terminal(report, { color: false, width: 400 }),
  junit,
  sarif,
  markdown,
  html,
};

test.each(Object.entries(WHOLE))("%s says that certificates were not checked", (_, draw) => {
  const report = sampleReport();
  expect(draw(report)).not.toContain("Certificates were not checked");
  const unchecked = { ...report, target: { ...report.target, insecure: true } };
  expect(draw(unchecked)).toContain("Certificates were not checked");
});

test("a changed state names what differs, the new value too, and nothing else", () => {
  const long = "x".repeat(300);
  const state = (tag: string, fields: Record<string, unknown>) => ({ status: 200, tag, fields });
  const [evidence] = rule.evidence;
  if (evidence === undefined) throw new Error("a violation has evidence");
  const before = state('"3"', { Id: long, Name: "A", Email: "e" });
  const after = state('"4"', { Id: long, Name: "B" });
  const text = findingText({ ...rule, evidence: [{ ...evidence, before, after, unchanged: false }] });
  expect(text).toContain('state: CHANGED, read back: Name "A" → "B", Email "e" → not shown, ETag "3" → "4"');
});

test.each(Object.entries(WHOLE))(
  "%s says what --quick left out, with the rules that it concerns",
  (_, draw) => {
    const pass = { ...sampleRule("pass", 1), leftOut: ["--quick: chunked bodies"] };
    expect(draw(sampleReport({ rules: [pass] }))).toMatch(/Left out by --quick: chunked bodies \\?\(IFM-02/);
  },
);
