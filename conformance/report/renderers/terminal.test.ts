import { expect, test } from "bun:test";
import { sampleReport, sampleRule } from "../../tests/sample-report.ts";
import { OUTCOMES, type RuleResult } from "../schema.ts";
import { BLOCK_LINES_MAX, failureBlock, terminal } from "./terminal.ts";

const style = { color: false, width: 110 };
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const CONTROL = /[\x00-\x09\x0b-\x1f\x7f\u202e]/;

test.each(OUTCOMES)(
  "a rule that is %s has a block of at most 24 lines without control characters",
  (outcome) => {
    const rule = sampleRule(outcome, 1);
    const block = failureBlock(rule, style);
    expect(block.length).toBeLessThanOrEqual(BLOCK_LINES_MAX);
    // The curl line is to be pasted as it is; what is invisible in it is quoted by curl.ts.
    for (const line of block.filter((each) => !each.includes("  curl "))) expect(line).not.toMatch(CONTROL);
  },
);

test("a block with everything and very long texts still has at most 24 lines, and ends with curl and rerun", () => {
  const long = "word ".repeat(400);
  const base = sampleRule("violation", 1);
  const moment = {
    round: 1,
    what: long,
    sentMs: 1,
    answeredMs: 2,
    status: 204,
    from: '"a"',
    to: '"b"',
    won: true,
  };
  const rule: RuleResult = {
    ...base,
    reason: long,
    rule: long,
    impact: long,
    evidence: base.evidence.map((evidence) => ({ ...evidence, probe: long, came: long, allowed: long })),
    timeline: Array.from({ length: 30 }, (_, lane) => ({ ...moment, lane: `writer ${lane}` })),
    layer: { name: long, sign: long, fix: long },
    curl: "curl -i 'http://x'",
  };
  const block = failureBlock(rule, style);
  expect(block.length).toBeLessThanOrEqual(BLOCK_LINES_MAX);
  expect(block.at(-2)).toContain("curl -i 'http://x'");
  expect(block.at(-1)).toContain(rule.rerun);
});

test("the report names verdict, exit code, what was not tested and why, and what is left", () => {
  const report = sampleReport();
  const text = terminal(report, style);
  expect(text).toContain(report.headline.slice(0, 20));
  expect(text).toContain(`exit ${report.exitCode}`);
  for (const rule of report.rules.filter(({ outcome }) => outcome === "could-not-run"))
    expect(text).toContain(rule.id.slice(0, 3));
});

test.each([
  ["conforms", "Conforms: 3 rules passed.", "conforms: 3 rules passed. (exit 0)"],
  ["violates", "Does not conform: ETG-01.", "violates: ETG-01. (exit 0)"],
  ["incomplete", "Nothing was tested.", "incomplete: Nothing was tested. (exit 0)"],
] as const)("the last line says %s once", (verdict, headline, line) => {
  const text = terminal(sampleReport({ verdict, headline, exitCode: 0 }), style);
  expect(text.split("\n").at(-1)).toBe(line);
});

test("colour is for terminals alone", () => {
  expect(terminal(sampleReport(), style)).not.toContain("\x1b[3");
  expect(terminal(sampleReport(), { ...style, color: true })).toContain("\x1b[3");
});

test("the sentence on overlap stands once, however many races there were", () => {
  const [race] = sampleReport().races;
  if (race === undefined) throw new Error("the sample has a race");
  const races = ["ATM-01", "ATM-02", "ATM-03"].map((rule, n) => ({ ...race, rule, gapMs: n }));
  const text = terminal(sampleReport({ races }), style).replace(/\s+/g, " ");
  expect(text.match(/longer has probably been hit/g)).toHaveLength(1);
  for (const { rule } of races) expect(text).toContain(`${rule} 19 of 20`);
});
