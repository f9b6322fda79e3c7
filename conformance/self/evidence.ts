/**
 * Whether each failure of a report shows the exchange that proves it: it is there, and its method, its status and its
 * read-back are those that the finding speaks of.
 */
import type { Evidence, Report, RuleResult } from "../report/schema.ts";

const METHOD = /^(GET|HEAD|POST|PUT|PATCH|DELETE) (?!.*, as POST)(?:with|without|to|of|\?)/;
const STATUS = /^([1-5]\d\d)(?:$|, | [{<"])/;

export function evidenceFaults(report: Report): string[] {
  return report.rules
    .filter(({ outcome }) => outcome === "violation" || outcome === "warning")
    .flatMap((rule) => [...unshown(rule), ...rule.evidence.flatMap((evidence) => wrong(rule, evidence))]);
}

/** Assertions that fired and show nothing. */
function unshown({ assertions, evidence }: RuleResult): string[] {
  const shown = new Set(evidence.flatMap(({ fired }) => fired));
  return assertions
    .filter(({ id, fired }) => fired > 0 && !shown.has(id))
    .map(({ id }) => `evidence: ${id} fired and shows no exchange`);
}

function wrong({ id, exchanges }: RuleResult, evidence: Evidence): string[] {
  const exchange = exchanges.find(({ n }) => n === evidence.sent);
  if (exchange === undefined) return [`evidence: ${id} shows no exchange of "${evidence.probe}"`];
  const faults: string[] = [];
  const complain = (what: string) => faults.push(`evidence: ${id} "${evidence.probe}": ${what}`);
  // What was counted shows in the scrape, not in the refusals.
  const method = exchange.purpose === "scrape" ? undefined : METHOD.exec(evidence.probe)?.[1];
  if (method !== undefined && method !== exchange.request.method)
    complain(`the exchange shown is a ${exchange.request.method}`);
  const status = STATUS.exec(evidence.came)?.[1];
  if (status !== undefined && status !== String(exchange.reply?.status))
    complain(`the exchange shown was answered ${exchange.reply?.status}, not ${status}`);
  if (evidence.fired.some((each) => each.endsWith(".unchanged")) && evidence.unchanged !== false)
    complain("the reads before and after are not shown, or show no change");
  return faults;
}
