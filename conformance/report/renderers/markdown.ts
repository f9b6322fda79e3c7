/** Markdown for a GitHub step summary: the verdict first, each finding folded. */

import { amount } from "../amount.ts";
import { causesFirst } from "../causes.ts";
import { caveats, findingText, groupsByReason, rulesWith } from "../finding.ts";
import { OUTCOMES, type Report, type RuleResult } from "../schema.ts";
import { visible } from "../visible.ts";

/** A step summary holds 1 MiB; what is beyond this many findings stands in report.json. */
const FINDINGS_MAX = 60;
const TEXT_MAX = 6000;

/** One line of text that no table, tag or link can come out of. */
function inline(text: string): string {
  return visible(text)
    .replaceAll("\n", " ")
    .replace(/[\\`*_{}[\]()#+!|~]/g, "\\$&")
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;");
}

/** A block of text as it is; the fence is longer than any run of backticks in it. */
function block(text: string): string {
  const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map(([run]) => run.length));
  const fence = "`".repeat(longest + 1);
  return `${fence}text\n${text}\n${fence}`;
}

function finding(rule: RuleResult): string {
  const title = `<b>${rule.id}</b> ${inline(rule.title)} (${rule.level})`;
  const known = rule.expected === null ? "" : ` expected until ${inline(rule.expected.until)}`;
  const text = findingText(rule).map(visible).join("\n").slice(0, TEXT_MAX);
  return `<details><summary>${title}${known}</summary>\n\n${block(text)}\n\n</details>`;
}

function section(title: string, rules: RuleResult[]): string[] {
  if (rules.length === 0) return [];
  const rest = rules.length - FINDINGS_MAX;
  const more = rest > 0 ? [`and ${rest} more, in report.json`] : [];
  return [`### ${title} (${rules.length})`, ...rules.slice(0, FINDINGS_MAX).map(finding), ...more];
}

export function markdown(report: Report): string {
  const shown = OUTCOMES.filter((outcome) => report.counts[outcome] > 0);
  const untested = rulesWith(report, "could-not-run", "inconclusive", "not-applicable");
  const mark = report.exitCode === 0 ? "✅" : "❌";
  return `${[
    `## ${mark} ${inline(report.headline)}`,
    `<code>${inline(report.target.baseUrl)}</code> · exit ${report.exitCode} · ${amount(report.requests, "request")} in ${(report.durationMs / 1000).toFixed(1)} s`,
    ...caveats(report).map((each) => `⚠️ ${inline(each)}`),
    [
      `| ${shown.join(" | ")} |`,
      `|${shown.map(() => "---:|").join("")}`,
      `| ${shown.map((outcome) => report.counts[outcome]).join(" | ")} |`,
    ].join("\n"),
    ...section("Violations", causesFirst(report, rulesWith(report, "violation"))),
    ...section("Faults of the kit", rulesWith(report, "kit-error")),
    ...(untested.length === 0
      ? []
      : [
          `### Not tested (${untested.length})`,
          [
            "| why | outcome | rules |",
            "|---|---|---|",
            ...groupsByReason(untested, report.rules).map(
              ({ reason, rules, names }) =>
                `| ${inline(reason)} | ${[...new Set(rules.map(({ outcome }) => outcome))].join(", ")} | ${names.join(" ")} |`,
            ),
          ].join("\n"),
        ]),
    ...section("Warnings", rulesWith(report, "warning")),
    ...(report.fixtures.left.length === 0
      ? []
      : [
          `### Left behind`,
          ...report.fixtures.left.map(({ id, why }) => `- <code>${inline(id)}</code>: ${inline(why)}`),
        ]),
  ].join("\n\n")}\n`;
}
