/**
 * A run as a bun test suite, one test a rule, for a CI that collects bun's own results:
 *
 *     REPORT=conformance-report/report.json bun test ./conformance/suite/
 *
 * The run itself comes before, with all flags of the command line.
 */
import { expect, test } from "bun:test";
import { failureBlock } from "../report/renderers/terminal.ts";
import { readReport } from "../report/report-file.ts";

const path = process.env["REPORT"];
if (path === undefined || path === "")
  throw new Error("REPORT is not set. Give the report.json of a run: REPORT=… bun test ./conformance/suite/");
const report = readReport(path);
const style = { color: false, width: 110 };

for (const rule of report.rules) {
  test(`${rule.id} ${rule.level} ${rule.title}`, () => {
    const isOpen = rule.outcome === "could-not-run" || rule.outcome === "inconclusive";
    const failed =
      rule.outcome === "kit-error" ||
      (rule.outcome === "violation" && rule.expected === null) ||
      (isOpen && rule.expected === null && !report.options.allowIncomplete);
    if (failed) throw new Error(`${rule.outcome}: ${rule.reason}\n${failureBlock(rule, style).join("\n")}`);
  });
}

test("the run as a whole conforms", () => {
  expect({ exitCode: report.exitCode, headline: report.headline }).toEqual({
    exitCode: 0,
    headline: report.headline,
  });
});
