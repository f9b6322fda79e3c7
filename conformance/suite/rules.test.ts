/**
 * The kit as a bun test suite, one test a rule:
 *
 *     BASE_URL=https://staging.example HEADER_ENV='Authorization: Bearer $TOKEN' bun test ./conformance/suite/
 *
 * Further variables are those of `conformance run`: PROFILE, CUSTOMER_ID, METRICS_URL … (README.md). The kit
 * runs once, before the first test; a rule that could not be tested fails unless ALLOW_INCOMPLETE is set.
 */
import { expect, test } from "bun:test";
import { failureBlock } from "../report/terminal.ts";
import { runKit } from "../run/engine.ts";
import { suiteSettings } from "./settings.ts";

const { profile, options } = suiteSettings(process.env);
const report = await runKit(profile, options);
const style = { color: false, width: 110 };

for (const rule of report.rules) {
  test(`${rule.id} ${rule.level} ${rule.title}`, () => {
    const failed =
      rule.outcome === "kit-error" ||
      (rule.outcome === "violation" && rule.expected === null) ||
      (!options.allowIncomplete && (rule.outcome === "could-not-run" || rule.outcome === "inconclusive"));
    if (failed) throw new Error(`${rule.outcome}: ${rule.reason}\n${failureBlock(rule, style).join("\n")}`);
    expect(["pass", "warning", "not-applicable", "violation", "could-not-run", "inconclusive"]).toContain(
      rule.outcome,
    );
  });
}

test("what was made has been removed, and what was given has been put back", () => {
  expect(report.fixtures.left).toEqual([]);
});

test("the run as a whole conforms", () => {
  expect({ verdict: report.verdict, headline: report.headline }).toEqual({
    verdict: "conforms",
    headline: report.headline,
  });
});
