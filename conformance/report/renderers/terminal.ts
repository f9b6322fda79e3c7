/** The terminal report: a block for each failure, then the account and the verdict. Drawn from report.json alone. */
import { styleText } from "node:util";
import { amount } from "../amount.ts";
import { causesFirst } from "../causes.ts";
import {
  caveats,
  customerNote,
  findingOf,
  groupsByReason,
  type Label,
  type Line,
  OVERLAP,
  rulesWith,
} from "../finding.ts";
import type { Moment, Report, RuleResult } from "../schema.ts";
import { visible } from "../visible.ts";

type TerminalStyle = { readonly color: boolean /** In columns. */; readonly width: number };

const LABEL_COLUMNS = 17;
const LEFT_SHOWN = 3;
const TIMELINE_LINES_MAX = 8;
export const BLOCK_LINES_MAX = 24;
const QUERY_CHARACTERS_MAX = 60;
const CURL_CHARACTERS_MAX = 1500;

/** How a headline says the verdict, before which the last line has it as scripts look for it. */
const VERDICT_IN_WORDS = /^(?:Conforms|Does not conform): /;

type Colour = "bold" | "red" | "yellow" | "green" | "dim";
type Paint = (colour: Colour, text: string) => string;

/** Whether the terminal takes colours was decided by the caller: `styleText` is not to look at the stream again. */
const paintWith =
  ({ color }: TerminalStyle): Paint =>
  (colour, text) =>
    color ? styleText(colour, text, { validateStream: false }) : text;

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
  const paint = paintWith(style);
  const failures = rulesWith(report, "violation", "warning");
  const lines = causesFirst(report, failures).flatMap((rule) => [...failureBlock(rule, style), ""]);
  for (const [title, rules] of [
    ["Could not be tested", rulesWith(report, "could-not-run", "inconclusive", "kit-error")],
    ["Not applicable here", rulesWith(report, "not-applicable")],
  ] as const) {
    if (rules.length === 0) continue;
    lines.push(paint("bold", title));
    for (const { reason, names } of groupsByReason(rules, report.rules))
      lines.push(...wrap(`${reason}: ${names.join(" ")}`, style.width, "  ", 3));
    lines.push("");
  }
  lines.push(...account(report, paint, style.width));
  return lines.join("\n");
}

function account(report: Report, paint: Paint, width: number): string[] {
  const { counts, fixtures } = report;
  const parts = Object.entries(counts)
    .filter(([, count]) => count > 0)
    .map(([outcome, count]) => `${count} ${outcome}`);
  const lines = [
    `${amount(report.rules.length, "rule")} against ${report.target.baseUrl}: ${parts.join(", ") || "none run"}`,
    `${amount(report.requests, "request")} in ${(report.durationMs / 1000).toFixed(1)} s; ${amount(fixtures.made, "customer")} made, ${fixtures.removed} removed${fixtures.given > 0 ? `; ${fixtures.given} given, ${fixtures.restored} put back` : ""}`,
  ];
  const overlaps = report.races.map(({ rule, overlapped, rounds, gapMs }) => {
    const within = gapMs === null ? "" : ` (${gapMs.toFixed(2)} ms)`;
    return `${rule} ${overlapped} of ${rounds}${within}`;
  });
  if (overlaps.length > 0)
    lines.push(...wrap(`Rounds that overlapped: ${overlaps.join(", ")}. ${OVERLAP}`, width, "", 5));
  if (fixtures.keptByDesign.length > 0)
    lines.push(`No DELETE is offered here, so these stay: ${fixtures.keptByDesign.join(" ")}`);
  for (const { id, why } of fixtures.left.slice(0, LEFT_SHOWN)) lines.push(`Left behind: ${id} (${why})`);
  const unshown = fixtures.left.length - LEFT_SHOWN;
  if (unshown > 0) lines.push(`Left behind: ${amount(unshown, "more customer")}; report.json lists all.`);
  if (fixtures.left.length > 0) lines.push("The command `cleanup` tries again.");
  const note = customerNote(report);
  if (note !== undefined) lines.push(...wrap(note, width, "", 3));
  for (const caveat of caveats(report))
    lines.push(...wrap(caveat, width, "", 3).map((line) => paint("yellow", line)));
  const tone = report.exitCode === 0 ? "green" : report.verdict === "violates" ? "red" : "yellow";
  const rest = report.headline.replace(VERDICT_IN_WORDS, "");
  lines.push("", paint(tone, paint("bold", `${report.verdict}: ${rest} (exit ${report.exitCode})`)));
  return lines;
}

/** At most 24 lines. The curl line is never wrapped, so that it can be pasted. */
export function failureBlock(raw: RuleResult, style: TerminalStyle): string[] {
  const rule = readable(raw);
  const paint = paintWith(style);
  const { about, probes, advice } = findingOf(rule);
  const [first] = probes;
  const mark = rule.outcome === "violation" ? paint("red", "✗") : paint("yellow", "!");
  const others = probes.length - 1 + (rule.evidenceOmitted ?? 0);
  const more = others > 0 ? ` (and ${others} more ${others === 1 ? "probe" : "probes"} like it)` : "";
  const row = ({ label, text }: Line) => {
    const shown = label === "probe" ? text + more : text;
    const indent = " ".repeat(LABEL_COLUMNS + 2);
    return wrap(shown, style.width, indent, LINES_MAX[label] ?? 2).map((line, index) =>
      index === 0 ? `  ${paint("dim", label.padEnd(LABEL_COLUMNS))}${line.trimStart()}` : line,
    );
  };
  const whole = ({ label, text }: Line) => {
    const tooLong = text.length > CURL_CHARACTERS_MAX;
    const shown = tooLong ? "too long for a terminal: see report.html or report.json" : text;
    return `  ${paint("dim", label.padEnd(LABEL_COLUMNS))}${shown}`;
  };
  const isCommand = ({ label }: Line) => label === "curl" || label === "rerun";
  // The title names the route already.
  const probeLines = (first?.lines ?? []).filter(({ label }) => label !== "request");
  const lines = [
    `${mark} ${paint("bold", `${rule.id}  ${rule.outcome === "warning" ? "warning" : rule.level}  ${rule.title}`)}  ${route(rule)}`,
    ...[...about, ...probeLines].flatMap(row),
    ...timeline(rule.timeline, paint),
    ...advice.filter((line) => !isCommand(line)).flatMap(row),
  ];
  const closing = advice.filter(isCommand).map(whole);
  return [...lines.slice(0, BLOCK_LINES_MAX - closing.length), ...closing];
}

/** Lines that a label may take, where it is not two. */
const LINES_MAX: Partial<Record<Label, number>> = { header: 1, known: 1, state: 3 };

/** The route of the first probe: `PUT /customers/{id}`. */
function route({ exchanges, evidence }: RuleResult): string {
  const request = (exchanges.find(({ n }) => n === evidence[0]?.sent) ?? exchanges[0])?.request;
  if (request === undefined) return "";
  const { pathname, search } = new URL(request.url);
  const path = /\/customers\/[^/]+$/.test(pathname) ? "/customers/{id}" : pathname;
  const query = search.length > QUERY_CHARACTERS_MAX ? `${search.slice(0, QUERY_CHARACTERS_MAX)}…` : search;
  return `${request.method} ${path}${query}`;
}

/** Who wrote what, in the order of the answers: the winners first of all that came at once. */
function timeline(moments: readonly Moment[], paint: Paint): string[] {
  const [first] = moments;
  if (first === undefined) return [];
  const round = moments.filter((moment) => moment.round === first.round);
  const start = Math.min(...round.map(({ sentMs }) => sentMs));
  const shown = [...round]
    .sort((a, b) => Number(b.won) - Number(a.won) || a.sentMs - b.sentMs)
    .slice(0, TIMELINE_LINES_MAX - 1);
  return [
    `  ${paint("dim", `round ${first.round}`.padEnd(LABEL_COLUMNS))}all with If-Match: ${first.from ?? "none"}`,
    ...shown.map(({ lane, what, sentMs, answeredMs, status, to, won }) => {
      const end = answeredMs === null ? "no reply" : `${(answeredMs - start).toFixed(1)} ms`;
      const text = `${(sentMs - start).toFixed(1)}–${end}  ${lane.padEnd(11)} ${status ?? "—"}${to === null ? "" : ` → ${to}`}  ${what}`;
      return `  ${" ".repeat(LABEL_COLUMNS)}${won ? paint("bold", text) : text}`;
    }),
  ];
}

/** Words into lines of `width` columns; what is beyond `linesMax` lines is cut with an ellipsis. */
function wrap(text: string, width: number, indent: string, linesMax: number): string[] {
  const room = Math.max(40, width - indent.length);
  const lines = Bun.wrapAnsi(text.replace(/\s*\n\s*/g, " "), room).split("\n");
  const kept = lines.slice(0, linesMax);
  if (lines.length > linesMax) kept[linesMax - 1] = `${(kept[linesMax - 1] ?? "").slice(0, room - 1)}…`;
  return kept.map((each) => `${indent}${each}`);
}
