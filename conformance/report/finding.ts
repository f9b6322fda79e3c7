/**
 * What every report says of a finding, as labelled lines. Renderers style these lines and add no words of their own,
 * so that one finding reads the same in the terminal, in JUnit, SARIF, Markdown and HTML.
 */
import type { Evidence, Exchange, Outcome, Report, RuleResult, State } from "./schema.ts";
import { visibleValue } from "./visible.ts";

export const LABELS = [
  "rule",
  "found",
  "known",
  "probe",
  "request",
  "header",
  "allowed",
  "came",
  "state",
  "control request",
  "impact",
  "layer",
  "fix",
  "curl",
  "rerun",
] as const;

export type Label = (typeof LABELS)[number];
export type Line = { readonly label: Label; readonly text: string };

export type Probe = {
  readonly lines: readonly Line[];
  readonly evidence: Evidence;
  /** The exchange whose answer broke the rule. */
  readonly exchange: Exchange | undefined;
};

export type Finding = {
  readonly about: readonly Line[];
  readonly probes: readonly Probe[];
  readonly advice: readonly Line[];
};

export const rulesWith = ({ rules }: Pick<Report, "rules">, ...outcomes: readonly Outcome[]): RuleResult[] =>
  rules.filter(({ outcome }) => outcomes.includes(outcome));

export function findingOf(rule: RuleResult): Finding {
  const { expected, layer } = rule;
  return {
    about: lines([
      ["rule", `${rule.rule} (specification ${rule.section})`],
      ["found", rule.reason],
      ["known", expected && `expected until ${expected.until} (${expected.owner}): ${expected.reason}`],
    ]),
    probes: rule.evidence.map((evidence) => probeOf(rule, evidence)),
    advice: lines([
      ["impact", rule.impact],
      ["layer", layer && `${layer.name} (${layer.sign})`],
      ["fix", layer?.fix],
      ["curl", rule.curl],
      ["rerun", rule.rerun],
    ]),
  };
}

/** The finding as lines of plain text, `label: text`. */
export function findingText(rule: RuleResult): string[] {
  const { about, probes, advice } = findingOf(rule);
  return [...about, ...probes.flatMap((probe) => probe.lines), ...advice].map(
    ({ label, text }) => `${label}: ${text}`,
  );
}

function probeOf(rule: RuleResult, evidence: Evidence): Probe {
  const exchangeAt = (n: number | null | undefined) => rule.exchanges.find((each) => each.n === n);
  const exchange = exchangeAt(evidence.sent);
  return {
    evidence,
    exchange,
    lines: lines([
      ["probe", evidence.probe],
      ["request", exchange && requestText(exchange)],
      ["header", evidence.header === null ? null : visibleValue(evidence.header)],
      ["allowed", evidence.allowed],
      ["came", evidence.came],
      ["state", stateText(evidence)],
      ["control request", controlText(evidence, exchangeAt(evidence.control?.n))],
    ]),
  };
}

function requestText({ request, framing, follows }: Exchange): string {
  const how = {
    chunked: ", with a chunked body",
    "http/1.0": ", over HTTP/1.0",
    "absolute-form": ", the whole URL in its request line",
  };
  const where = follows === undefined ? "" : `, on the connection of request ${follows}`;
  return `${request.method} ${request.url}${framing === undefined ? "" : how[framing]}${where}`;
}

function lines(pairs: readonly (readonly [Label, string | null | undefined])[]): Line[] {
  return pairs.flatMap(([label, text]) =>
    text === null || text === undefined || text === "" ? [] : [{ label, text }],
  );
}

function stateText({ after, before, unchanged }: Evidence): string | null {
  if (after === null) return null;
  if (unchanged === null) return `read back: ${stateOf(after)}`;
  if (unchanged) return `unchanged, read back: ${stateOf(after)}`;
  const changes = before === null ? "" : changesOf(before, after);
  return `CHANGED, read back: ${changes === "" ? stateOf(after) : changes}`;
}

/** What differs alone, so that the new state is never cut off behind the former one. */
function changesOf(before: State, after: State): string {
  if (after.status !== before.status) return `${before.status} → ${stateOf(after)}`;
  const shown = (value: unknown) => (value === undefined ? "not shown" : JSON.stringify(value));
  const names = [...new Set([...Object.keys(before.fields ?? {}), ...Object.keys(after.fields ?? {})])];
  const fields = names
    .map((name) => [name, before.fields?.[name], after.fields?.[name]] as const)
    .filter(([, from, to]) => !Bun.deepEquals(from, to))
    .map(([name, from, to]) => `${name} ${shown(from)} → ${shown(to)}`);
  const tags = [before.tag, after.tag].map((tag) => visibleValue(tag ?? "none"));
  return [...fields, ...(before.tag === after.tag ? [] : [`ETag ${tags.join(" → ")}`])].join(", ");
}

function stateOf({ status, tag, fields }: State): string {
  return `${status}${tag === null ? "" : ` ${visibleValue(tag)}`} ${JSON.stringify(fields ?? {})}`;
}

/** With its own header, since the one thing that differs may be a blank. */
function controlText({ control, header }: Evidence, exchange: Exchange | undefined): string | null {
  if (control === null) return null;
  const sent = exchange?.request.headers.find(([name]) => name.toLowerCase() === "if-match");
  const own = sent === undefined ? "" : `${sent[0]}: ${visibleValue(sent[1])}`;
  const differs = own === "" || (header !== null && visibleValue(header) === own) ? "" : ` with ${own}`;
  const accepted = control.status < 300 ? "accepted" : "refused";
  const outcome = control.ok ? accepted : `${accepted} as well`;
  return `${outcome} (${control.status}, request ${control.n})${differs}; it differs in: ${control.differs}`;
}

/** How far the races of a run can be trusted. */
export const OVERLAP =
  "The time is the median within which the last bytes of a round left. A gap between check and write that is longer has probably been hit in so many rounds; a shorter one may have gone unseen.";

/** Rules that share a reason, each family as a whole where all of its rules are among them. */
type ReasonGroup = {
  readonly reason: string;
  readonly rules: readonly RuleResult[];
  readonly names: readonly string[];
};

/** @param all every rule of the report. Largest group first, so that one remedy enables as much as possible. */
export function groupsByReason(rules: readonly RuleResult[], all: readonly RuleResult[]): ReasonGroup[] {
  const groups = Map.groupBy(rules, ({ reason }) => reason);
  return [...groups]
    .map(([reason, members]) => ({ reason, rules: members, names: namesOf(members, all) }))
    .sort((a, b) => b.rules.length - a.rules.length);
}

function namesOf(rules: readonly RuleResult[], all: readonly RuleResult[]): string[] {
  return [...Map.groupBy(rules, ({ family }) => family)].flatMap(([family, members]) => {
    const size = all.filter((rule) => rule.family === family).length;
    return members.length > 2 && members.length === size ? [family] : members.map(({ id }) => id);
  });
}

/** Whether the curl lines still have a customer to hit; undefined where there is nothing to say. */
export function customerNote({ rules, fixtures, options }: Report): string | undefined {
  const { keptFailing, removed } = fixtures;
  if (keptFailing.length > 0)
    return `Left in place by --keep-failing: customer ${keptFailing.join(" ")}. The command \`cleanup\` removes it.`;
  if (removed === 0 || !rules.some(({ curl }) => curl !== null)) return undefined;
  const wanted = options.arguments.includes("--keep-failing");
  return wanted
    ? "No customer of a violation was left to keep."
    : "The customers that the curl lines name were deleted at the end of the run. With --keep-failing the first of them stays.";
}

/** What a short or a gentle run left out, with the rules whose outcome does not cover it. */
function leftOut(rules: readonly RuleResult[]): string[] {
  const pairs = rules.flatMap(({ id, leftOut = [] }) => leftOut.map((what) => ({ what, id })));
  return [...Map.groupBy(pairs, ({ what }) => what)].map(
    ([what, all]) => `Left out by ${what} (${all.map(({ id }) => id).join(" ")}).`,
  );
}

/** What a reader must know before believing the verdict. Stands in every report. */
export function caveats({ target, options, rules }: Report): string[] {
  return [
    ...(target.insecure === true
      ? ["Certificates were not checked (tls.insecure): somebody else on the way may have answered."]
      : []),
    ...(options.gentle === true
      ? ["Probes that look like an attack or a flood were left out (--gentle)."]
      : []),
    ...leftOut(rules),
  ];
}
