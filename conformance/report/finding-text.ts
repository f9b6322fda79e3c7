/** What JUnit, SARIF and Markdown say of a finding, in lines of plain text. */
import type { Evidence, Exchange, RuleResult } from "./schema.ts";
import { visible, visibleValue } from "./visible.ts";

export function exchangeOf(rule: RuleResult, evidence: Evidence): Exchange | undefined {
  return rule.exchanges.find((exchange) => exchange.n === evidence.sent);
}

export function stateAfter(evidence: Evidence): string {
  if (evidence.unchanged === null) return "not read back";
  return evidence.unchanged ? "unchanged, read back" : "changed, read back";
}

export function twinLine(evidence: Evidence): string | undefined {
  if (evidence.twin === null) return undefined;
  const { differs, n, status, ok } = evidence.twin;
  return `${ok ? "was accepted" : "failed as well"} (${status}, request ${n}); it differs in: ${differs}`;
}

/** Lines `label: text`; the first two are the reason and the rule. */
export function findingLines(rule: RuleResult): string[] {
  const lines = [rule.reason, `rule: ${rule.rule} (specification ${rule.section})`];
  for (const evidence of rule.evidence) {
    const exchange = exchangeOf(rule, evidence);
    lines.push(`probe: ${evidence.probe}`);
    if (exchange !== undefined) lines.push(`sent: ${exchange.request.method} ${exchange.request.url}`);
    if (evidence.odd !== null) lines.push(`odd: ${visibleValue(evidence.odd)}`);
    lines.push(`allowed: ${evidence.allowed}`, `came: ${evidence.came}`);
    if (evidence.unchanged !== null) lines.push(`state: ${stateAfter(evidence)}`);
    const twin = twinLine(evidence);
    if (twin !== undefined) lines.push(`twin: ${twin}`);
  }
  lines.push(`impact: ${rule.impact}`);
  if (rule.layer !== null)
    lines.push(`layer: ${rule.layer.name} (${rule.layer.sign}); mend: ${rule.layer.mending}`);
  if (rule.curl !== null) lines.push(`curl: ${rule.curl}`);
  lines.push(`again: ${rule.again}`);
  return lines.map(visible);
}

/** Whether a rule's outcome counts against the deployment: an expected violation does not. */
export function counts(rule: RuleResult): boolean {
  return rule.outcome === "violation" && rule.expected === null;
}
