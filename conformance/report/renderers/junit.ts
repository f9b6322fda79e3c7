/** JUnit XML, one suite a family, one case a rule, and one for the verdict, so that no red run reads green. */

import { caveats, findingText } from "../finding.ts";
import { FAMILIES, type Outcome, type Report, type RuleResult } from "../schema.ts";
import { escapeMarkup } from "../visible.ts";

type Result = { tag: "failure" | "error" | "skipped"; type: string; message: string; text: string };

const TAGS = {
  pass: undefined,
  // A SHOULD stands in system-out: a CI job that fails on it would be switched off.
  warning: undefined,
  violation: "failure",
  "kit-error": "error",
  "not-applicable": "skipped",
  "could-not-run": "error",
  inconclusive: "error",
} as const satisfies Record<Outcome, Result["tag"] | undefined>;

function resultOf(rule: RuleResult, incompleteIsFine: boolean): Result | undefined {
  const { outcome, expected, reason } = rule;
  const text = findingText(rule).join("\n");
  if (expected !== null) {
    const message = `expected until ${expected.until} (${expected.owner}): ${expected.reason}`;
    return { tag: "skipped", type: outcome, message, text };
  }
  const untested = outcome === "could-not-run" || outcome === "inconclusive";
  const tag = untested && incompleteIsFine ? "skipped" : TAGS[outcome];
  return tag && { tag, type: outcome, message: reason, text };
}

type Case = {
  readonly classname: string;
  readonly name: string;
  readonly seconds: number;
  readonly result: Result | undefined;
  /** What stands in system-out. */
  readonly said: string;
};

function testcase({ classname, name, seconds, result, said }: Case): string {
  const open = `    <testcase classname="${escapeMarkup(classname)}" name="${escapeMarkup(name)}" time="${seconds.toFixed(3)}"`;
  const output = said === "" ? "" : `\n      <system-out>${escapeMarkup(said)}</system-out>`;
  if (result === undefined) return output === "" ? `${open}/>` : `${open}>${output}\n    </testcase>`;
  const { tag, type, message, text } = result;
  const attributes = `message="${escapeMarkup(message)}"${tag === "skipped" ? "" : ` type="${escapeMarkup(type)}"`}`;
  return `${open}>\n      <${tag} ${attributes}>${escapeMarkup(text)}</${tag}>${output}\n    </testcase>`;
}

/** The attributes that a suite and the whole have alike. */
function totals(cases: readonly Case[], seconds: number): string {
  const count = (tag: Result["tag"]) => cases.filter(({ result }) => result?.tag === tag).length;
  return `tests="${cases.length}" failures="${count("failure")}" errors="${count("error")}" skipped="${count("skipped")}" time="${seconds.toFixed(3)}"`;
}

function suite([name, cases]: readonly [name: string, cases: readonly Case[]]): string {
  const seconds = cases.reduce((sum, each) => sum + each.seconds, 0);
  const body = cases.map(testcase).join("\n");
  return `  <testsuite name="${name}" ${totals(cases, seconds)}>\n${body}\n  </testsuite>`;
}

function caseOf(rule: RuleResult, incompleteIsFine: boolean): Case {
  return {
    classname: `conformance.${rule.family}`,
    name: `${rule.id} ${rule.title}`,
    seconds: rule.durationMs / 1000,
    result: resultOf(rule, incompleteIsFine),
    said: rule.outcome === "warning" ? findingText(rule).join("\n") : "",
  };
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
  const whole: Case = {
    classname: "conformance",
    name: `verdict: ${report.target.baseUrl}`,
    seconds,
    result: verdict,
    said: [report.headline, ...caveats(report)].join("\n"),
  };
  const families = FAMILIES.map((family) => {
    const rules = report.rules.filter((rule) => rule.family === family);
    return [family, rules.map((rule) => caseOf(rule, report.options.allowIncomplete))] as const;
  });
  const suites = [["verdict", [whole]] as const, ...families.filter(([, cases]) => cases.length > 0)];
  const all = suites.flatMap(([, cases]) => cases);
  return `<?xml version="1.0" encoding="UTF-8"?>\n<testsuites name="customers-conformance" ${totals(all, seconds)}>\n${suites.map(suite).join("\n")}\n</testsuites>\n`;
}
