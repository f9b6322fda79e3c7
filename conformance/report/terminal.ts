/** The terminal report: a block for each failure, then the account and the verdict. Drawn from report.json alone. */
import type { Evidence, Moment, Report, RuleResult } from "./schema.ts";
import { visible } from "./visible.ts";

export type TerminalStyle = { readonly color: boolean /** In columns. */; readonly width: number };

const LABEL_COLUMNS = 10;
const TIMELINE_LINES_MAX = 8;
export const BLOCK_LINES_MAX = 24;
const QUERY_CHARACTERS_MAX = 60;
const CURL_CHARACTERS_MAX = 1500;

type Paint = (text: string) => string;

function paints({ color }: TerminalStyle): Record<"bold" | "red" | "yellow" | "green" | "dim", Paint> {
  const code =
    (on: number, off: number): Paint =>
    (text) =>
      color ? `\x1b[${on}m${text}\x1b[${off}m` : text;
  return {
    bold: code(1, 22),
    red: code(31, 39),
    yellow: code(33, 39),
    green: code(32, 39),
    dim: code(2, 22),
  };
}

/** Everything that a stranger's service can have a hand in, without control sequences. */
function readable<T>(value: T): T {
  if (typeof value === "string") return visible(value) as T;
  if (Array.isArray(value)) return value.map(readable) as T;
  if (typeof value === "object" && value !== null)
    // The curl line is to be pasted as it is; curl.ts has quoted what is invisible in it.
    return Object.fromEntries(
      Object.entries(value).map(([key, each]) => [key, key === "curl" ? each : readable(each)]),
    ) as T;
  return value;
}

export function terminal(raw: Report, style: TerminalStyle): string {
  const report = readable(raw);
  const paint = paints(style);
  const failures = report.rules.filter(({ outcome }) => outcome === "violation" || outcome === "warning");
  const lines = failures.flatMap((rule) => [...failureBlock(rule, style), ""]);
  const untested = report.rules.filter(
    ({ outcome }) => outcome === "could-not-run" || outcome === "inconclusive" || outcome === "kit-error",
  );
  if (untested.length > 0) {
    lines.push(paint.bold("Not tested, or not to the end"));
    for (const [reason, ids] of byReason(untested, report.rules))
      lines.push(...wrap(`${ids.join(" ")}: ${reason}`, style.width, "  ", 3));
    lines.push("");
  }
  const absent = report.rules.filter(({ outcome }) => outcome === "not-applicable");
  if (absent.length > 0) {
    lines.push(paint.bold("Not applicable here"));
    for (const [reason, ids] of byReason(absent, report.rules))
      lines.push(...wrap(`${ids.join(" ")}: ${reason}`, style.width, "  ", 3));
    lines.push("");
  }
  lines.push(...account(report, paint));
  return lines.join("\n");
}

function account(report: Report, paint: ReturnType<typeof paints>): string[] {
  const { counts, fixtures } = report;
  const parts = Object.entries(counts)
    .filter(([, count]) => count > 0)
    .map(([outcome, count]) => `${count} ${outcome}`);
  const lines = [
    `${report.rules.length} rules against ${report.target.baseUrl}: ${parts.join(", ") || "none run"}`,
    `${report.requests} requests in ${(report.durationMs / 1000).toFixed(1)} s; ${fixtures.made} customers made, ${fixtures.removed} removed${fixtures.given > 0 ? `; ${fixtures.given} given, ${fixtures.restored} put back` : ""}`,
  ];
  for (const race of report.races)
    lines.push(`${race.rule}: ${race.overlapped} of ${race.rounds} rounds overlapped; ${race.note}`);
  if (fixtures.keptByDesign.length > 0)
    lines.push(`No DELETE is offered here, so these stay: ${fixtures.keptByDesign.join(" ")}`);
  for (const { id, why } of fixtures.left)
    lines.push(`Left behind: ${id} (${why}); try \`conformance cleanup\``);
  const tone = report.exitCode === 0 ? paint.green : report.verdict === "violates" ? paint.red : paint.yellow;
  lines.push("", tone(paint.bold(`${report.verdict}: ${report.headline} (exit ${report.exitCode})`)));
  return lines;
}

/** A family that shares one reason as a whole is named once. */
function byFamily(ids: readonly string[], all: readonly RuleResult[]): string[] {
  const families = [...new Set(ids.map((id) => id.slice(0, 3)))];
  return families.flatMap((family) => {
    const here = ids.filter((id) => id.startsWith(family));
    const whole = here.length > 2 && here.length === all.filter((rule) => rule.family === family).length;
    return whole ? [family] : here;
  });
}

function byReason(rules: readonly RuleResult[], all: readonly RuleResult[]): Map<string, string[]> {
  const found = new Map<string, string[]>();
  for (const { id, reason } of rules) found.set(reason, [...(found.get(reason) ?? []), id]);
  for (const [reason, ids] of found) found.set(reason, byFamily(ids, all));
  return found;
}

/** At most 24 lines. The curl line is never wrapped, so that it can be pasted. */
export function failureBlock(raw: RuleResult, style: TerminalStyle): string[] {
  const rule = readable(raw);
  const paint = paints(style);
  const [evidence] = rule.evidence;
  const mark = rule.outcome === "violation" ? paint.red("✗") : paint.yellow("!");
  const known =
    rule.expected === null
      ? ""
      : `  (expected until ${rule.expected.until}: ${rule.expected.reason}, ${rule.expected.owner})`;
  const row = (label: string, text: string | undefined | null, lineCount = 2) =>
    text === undefined || text === null || text === ""
      ? []
      : wrap(text, style.width, " ".repeat(LABEL_COLUMNS + 2), lineCount).map((line, index) =>
          index === 0 ? `  ${paint.dim(label.padEnd(LABEL_COLUMNS))}${line.trimStart()}` : line,
        );
  const more = rule.evidence.length > 1 ? ` (and ${rule.evidence.length - 1} more probes like it)` : "";
  const lines = [
    `${mark} ${paint.bold(`${rule.id}  ${rule.level}  ${rule.title}`)}  ${route(rule)}${known}`,
    ...row("rule", `${rule.section}: ${rule.rule}`),
    ...row("found", rule.reason),
    ...row(
      "sent",
      evidence === undefined
        ? null
        : `${evidence.probe}${evidence.odd === null ? "" : `   ${evidence.odd}`}${more}`,
    ),
    ...row("allowed", evidence?.allowed),
    ...row("came", evidence?.came),
    ...row("state", stateAfter(evidence)),
    ...row(
      "twin",
      evidence?.twin === null || evidence?.twin === undefined
        ? null
        : `${evidence.twin.differs}: ${evidence.twin.status}`,
      1,
    ),
    ...timeline(rule.timeline, paint),
    ...row("impact", rule.impact),
    ...row(
      "layer",
      rule.layer === null ? null : `${rule.layer.name} (${rule.layer.sign}); mend: ${rule.layer.mending}`,
    ),
  ];
  const closing = [
    ...(rule.curl === null
      ? []
      : [
          `  ${paint.dim("curl".padEnd(LABEL_COLUMNS))}${rule.curl.length > CURL_CHARACTERS_MAX ? "too long for a terminal: it stands in report.html and report.json" : rule.curl}`,
        ]),
    `  ${paint.dim("again".padEnd(LABEL_COLUMNS))}${rule.again}`,
  ];
  return [...lines.slice(0, BLOCK_LINES_MAX - closing.length), ...closing];
}

/** The route of the first probe: `PUT /customers/{id}`. */
function route({ exchanges, evidence }: RuleResult): string {
  const request = (exchanges.find(({ n }) => n === evidence[0]?.sent) ?? exchanges[0])?.request;
  if (request === undefined) return "";
  const { pathname, search } = new URL(request.url);
  const path = /\/customers\/[^/]+$/.test(pathname) ? "/customers/{id}" : pathname;
  const query = search.length > QUERY_CHARACTERS_MAX ? `${search.slice(0, QUERY_CHARACTERS_MAX)}…` : search;
  return `${request.method} ${path}${query}`;
}

function stateAfter(evidence: Evidence | undefined): string | null {
  if (evidence === undefined || evidence.after === null) return null;
  const { after, before, unchanged } = evidence;
  const word = unchanged === null ? "read back" : unchanged ? "unchanged, read back" : "CHANGED, read back";
  const shown = (state: typeof after) =>
    `${state.status}${state.tag === null ? "" : ` ${state.tag}`} ${JSON.stringify(state.fields ?? {})}`;
  return unchanged === true || before === null
    ? `${word}: ${shown(after)}`
    : `${word}: ${shown(before)} → ${shown(after)}`;
}

/** Who wrote what, in the order of the answers: the winners first of all that came at once. */
function timeline(moments: readonly Moment[], paint: ReturnType<typeof paints>): string[] {
  const [first] = moments;
  if (first === undefined) return [];
  const round = moments.filter((moment) => moment.round === first.round);
  const start = Math.min(...round.map(({ sentMs }) => sentMs));
  const shown = [...round]
    .sort((a, b) => Number(b.won) - Number(a.won) || a.sentMs - b.sentMs)
    .slice(0, TIMELINE_LINES_MAX - 1);
  return [
    `  ${paint.dim(`round ${first.round}`.padEnd(LABEL_COLUMNS))}all with If-Match: ${first.from ?? "none"}`,
    ...shown.map(({ lane, what, sentMs, answeredMs, status, to, won }) => {
      const end = answeredMs === null ? "no reply" : `${(answeredMs - start).toFixed(1)} ms`;
      const text = `${(sentMs - start).toFixed(1)}–${end}  ${lane.padEnd(11)} ${status ?? "—"}${to === null ? "" : ` → ${to}`}  ${what}`;
      return `  ${" ".repeat(LABEL_COLUMNS)}${won ? paint.bold(text) : text}`;
    }),
  ];
}

/** Words into lines of `width` columns; what is beyond `linesMax` lines is cut with an ellipsis. */
function wrap(text: string, width: number, indent: string, linesMax: number): string[] {
  const room = Math.max(40, width - indent.length);
  const lines: string[] = [];
  let line = "";
  for (const word of text.replace(/\s*\n\s*/g, " ").split(" ")) {
    const longer = line === "" ? word : `${line} ${word}`;
    if (longer.length > room && line !== "") {
      lines.push(line);
      line = word;
    } else line = longer;
  }
  lines.push(line);
  const kept = lines.slice(0, linesMax);
  if (lines.length > linesMax) kept[linesMax - 1] = `${(kept[linesMax - 1] ?? "").slice(0, room - 1)}…`;
  return kept.map((each) => `${indent}${each}`);
}
