/** JUnit XML, one suite a family, one case a rule, and one for the verdict, so that no red run reads green. */

import { caveats, findingText } from "./finding.ts";
import { FAMILIES, type Report, type RuleResult } from "./schema.ts";
import { escapeMarkup } from "./visible.ts";

type Result = { tag: "failure" | "error" | "skipped"; type: string; message: string; text: string };

function resultOf(rule: RuleResult, incompleteIsFine: boolean): Result | undefined {
  const text = findingText(rule).join("\n");
  const result = (tag: Result["tag"], message = rule.reason): Result => ({
    tag,
    type: rule.outcome,
    message,
    text,
  });
  if (rule.expected !== null)
    return result(
      "skipped",
      `expected until ${rule.expected.until} (${rule.expected.owner}): ${rule.expected.reason}`,
    );
  switch (rule.outcome) {
    case "pass":
    case "warning": // a SHOULD: it stands in system-out; a CI job that fails on it would be switched off
      return undefined;
    case "violation":
      return result("failure");
    case "kit-error":
      return result("error");
    case "not-applicable":
      return result("skipped");
    case "could-not-run":
    case "inconclusive":
      return result(incompleteIsFine ? "skipped" : "error");
  }
}

function testcase(
  classname: string,
  name: string,
  seconds: number,
  result: Result | undefined,
  said: string,
): string {
  const open = `    <testcase classname="${escapeMarkup(classname)}" name="${escapeMarkup(name)}" time="${seconds.toFixed(3)}"`;
  const output = said === "" ? "" : `\n      <system-out>${escapeMarkup(said)}</system-out>`;
  if (result === undefined) return output === "" ? `${open}/>` : `${open}>${output}\n    </testcase>`;
  const { tag, type, message, text } = result;
  const attributes = `message="${escapeMarkup(message)}"${tag === "skipped" ? "" : ` type="${escapeMarkup(type)}"`}`;
  return `${open}>\n      <${tag} ${attributes}>${escapeMarkup(text)}</${tag}>${output}\n    </testcase>`;
}

function suite(name: string, cases: { xml: string; result: Result | undefined; seconds: number }[]): string {
  const count = (tag: Result["tag"]) => cases.filter(({ result }) => result?.tag === tag).length;
  const seconds = cases.reduce((sum, each) => sum + each.seconds, 0);
  const totals = `tests="${cases.length}" failures="${count("failure")}" errors="${count("error")}" skipped="${count("skipped")}"`;
  const body = cases.map(({ xml }) => xml).join("\n");
  return `  <testsuite name="${name}" ${totals} time="${seconds.toFixed(3)}">\n${body}\n  </testsuite>`;
}

export function junit(report: Report): string {
  const verdict: Result | undefined =
    report.exitCode === 0
      ? undefined
      : {
          tag: "failure",
          type: report.verdict,
          message: report.headline,
          text: `exit code ${report.exitCode}`,
        };
  const seconds = report.durationMs / 1000;
  const said = [report.headline, ...caveats(report)].join("\n");
  const suites = [
    suite("verdict", [
      {
        xml: testcase("conformance", `verdict: ${report.target.baseUrl}`, seconds, verdict, said),
        result: verdict,
        seconds,
      },
    ]),
  ];
  const results: (Result | undefined)[] = [verdict];
  for (const family of FAMILIES) {
    const rules = report.rules.filter((rule) => rule.family === family);
    if (rules.length === 0) continue;
    const cases = rules.map((rule) => {
      const result = resultOf(rule, report.options.allowIncomplete);
      const said = rule.outcome === "warning" ? findingText(rule).join("\n") : "";
      const time = rule.durationMs / 1000;
      return {
        xml: testcase(`conformance.${family}`, `${rule.id} ${rule.title}`, time, result, said),
        result,
        seconds: time,
      };
    });
    results.push(...cases.map(({ result }) => result));
    suites.push(suite(family, cases));
  }
  const count = (tag: Result["tag"]) => results.filter((result) => result?.tag === tag).length;
  const totals = `tests="${results.length}" failures="${count("failure")}" errors="${count("error")}" skipped="${count("skipped")}"`;
  return `<?xml version="1.0" encoding="UTF-8"?>\n<testsuites name="customers-conformance" ${totals} time="${seconds.toFixed(3)}">\n${suites.join("\n")}\n</testsuites>\n`;
}
