/**
 * Whether each failure of a report shows the exchange that proves it: it is there, and its method, header, status,
 * control request and read-back are those that the finding speaks of.
 */
import { visible } from "../probe/requests/tag-forms.ts";
import type { Evidence, Exchange, Report, RuleResult } from "../report/schema.ts";

const METHOD = /^(GET|HEAD|POST|PUT|PATCH|DELETE) (?:with|without|to|of|\?)/;
/** A PUT that a header or a parameter makes of a POST leaves as POST. */
const SENT_AS = / as (POST|GET|HEAD|PUT) with /;
const STATUS = /^([1-5]\d\d)(?:$|, | [{<"])/;
const ANSWERED = /\bwas answered ([1-5]\d\d)\b/;

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

function wrong(rule: RuleResult, evidence: Evidence): string[] {
  const { id, exchanges } = rule;
  const exchange = exchanges.find(({ n }) => n === evidence.sent);
  if (exchange === undefined) return [`evidence: ${id} shows no exchange of "${evidence.probe}"`];
  const { request, reply } = exchange;
  const faults: string[] = [];
  const complain = (what: string) => faults.push(`evidence: ${id} "${evidence.probe}": ${what}`);
  const isScrape = exchange.purpose === "scrape";
  // What was counted shows in the scrape, not in the refusals.
  if (isScrape && (!id.startsWith("MET-") || request.method !== "GET" || reply?.status !== 200))
    complain("the exchange shown is a scrape, and not the one of a finding on counters");
  const method = SENT_AS.exec(evidence.probe)?.[1] ?? METHOD.exec(evidence.probe)?.[1];
  if (!isScrape && method !== undefined && method !== request.method)
    complain(`the exchange shown is a ${request.method}`);
  const status = STATUS.exec(evidence.came)?.[1];
  if (status !== undefined && status !== String(reply?.status))
    complain(`the exchange shown was answered ${reply?.status}, not ${status}`);
  const missing = evidence.header?.split(" ⏎ ").find((line) => !linesOf(exchange).includes(line));
  if (missing !== undefined) complain(`the exchange shown did not carry ${missing}`);
  for (const { id: assertion, detail } of firstFired(rule, evidence)) {
    const answered = ANSWERED.exec(detail ?? "")?.[1];
    if (!isScrape && answered !== undefined && answered !== String(reply?.status))
      complain(`${assertion} says ${answered}, and the exchange shown was answered ${reply?.status}`);
  }
  const { control } = evidence;
  const beside = exchanges.find(({ n }) => n === control?.n);
  if (control !== null && beside?.reply?.status !== control.status)
    complain("the control request is not shown, or was answered otherwise");
  if (evidence.fired.some((each) => each.endsWith(".unchanged")) && evidence.unchanged !== false)
    complain("the reads before and after are not shown, or show no change");
  return faults;
}

const linesOf = ({ request }: Exchange): string[] =>
  request.headers.map(([name, value]) => `${name}: ${visible(value)}`);

/** Assertions that this probe was the first to break: their words are of it. */
function firstFired({ assertions, evidence }: RuleResult, of: Evidence) {
  const before = evidence.slice(0, evidence.indexOf(of)).flatMap(({ fired }) => fired);
  return assertions.filter(({ id }) => of.fired.includes(id) && !before.includes(id));
}
