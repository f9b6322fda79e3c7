/** One finding of the HTML page: what was sent, allowed, came, and stood afterwards. */
import { amount } from "../../amount.ts";
import { findingOf, type Label, type Line, type Probe } from "../../finding.ts";
import type { Exchange, Outcome, RuleResult } from "../../schema.ts";
import { escapeMarkup as esc, inlineCode, visibleValue } from "../../visible.ts";
import { raceHtml } from "./html-race.ts";
import { citationHtml } from "./specification-html.ts";

/** Probes shown at once; the rest folds up. */
const PROBES_MAX = 2;

export type Tone = "good" | "bad" | "warn" | "mute" | "kit";

export const TONES = {
  pass: "good",
  violation: "bad",
  warning: "warn",
  "kit-error": "kit",
  "could-not-run": "mute",
  inconclusive: "mute",
  "not-applicable": "mute",
} as const satisfies Record<Outcome, Tone>;

export const chip = (outcome: Outcome): string =>
  `<span class="chip c-${TONES[outcome]}">${outcome.replaceAll("-", " ")}</span>`;

/** A longer text in bold is hard to read. */
const BOLD_CHARACTERS_MAX = 80;

/** How the text of a label is set; a sentence where nothing else is said. */
const STYLES: Partial<Record<Label, (text: string) => string>> = {
  header: (text) => `<code>${esc(text)}</code>`,
  request: (text) => `<code>${esc(text)}</code>`,
  came: (text) => (text.length > BOLD_CHARACTERS_MAX ? esc(text) : `<b>${esc(text)}</b>`),
  state: (text) => esc(text).replace(/^CHANGED/, '<span class="no">CHANGED</span>'),
  fix: (text) => `<code>${esc(text)}</code>`,
  curl: (text) => `<pre><code>${esc(text)}</code></pre>`,
  rerun: (text) => `<pre><code>${esc(text)}</code></pre>`,
};

/** @param citation links in place of the text that names the section */
function list(lines: readonly Line[], citation: readonly [text: string, links: string] = ["", ""]): string {
  const rows = lines.map(({ label, text }) => {
    const set = STYLES[label] ?? ((plain: string) => inlineCode(esc(plain)));
    const [place, links] = citation;
    const cited = label === "rule" && text.endsWith(place);
    const shown = cited ? set(text.slice(0, text.length - place.length)) + links : set(text);
    return `<dt>${label}</dt><dd>${shown}</dd>`;
  });
  return `<dl class="say">${rows.join("")}</dl>`;
}

function message(exchange: Exchange): string {
  const { request, reply, failure } = exchange;
  const headers = (lines: [string, string][]) =>
    lines.map(([name, value]) => `${name}: ${visibleValue(value)}`);
  const sent = [
    `${request.method} ${request.url}`,
    ...headers(request.headers),
    ...(request.body === null ? [] : ["", request.body]),
  ];
  const got =
    reply === null
      ? [failure ?? "no complete reply"]
      : [String(reply.status), ...headers(reply.headers), ...(reply.body === "" ? [] : ["", reply.body])];
  return `<pre><code>${esc(sent.join("\n"))}</code></pre><pre><code>${esc(got.join("\n"))}</code></pre>`;
}

function probeHtml({ lines, evidence, exchange }: Probe): string {
  const fired = evidence.fired.map((id) => `<code>${esc(id)}</code>`).join(" ");
  const shown =
    exchange === undefined
      ? ""
      : `<details><summary>request ${exchange.n} and its reply</summary>${message(exchange)}</details>`;
  return `<div class="probe">${list(lines)}<p class="legend">Assertions that failed: ${fired}</p>${shown}</div>`;
}

/** @param open the first findings stand open; a page of fifty would not be read. */
export function findingHtml(rule: RuleResult, open: boolean): string {
  const { about, probes, advice } = findingOf(rule);
  const shown = probes.map(probeHtml);
  const rest = shown.slice(PROBES_MAX);
  const folded =
    rest.length === 0
      ? ""
      : `<details class="more"><summary>${amount(rest.length, "more probe")} of this rule failed</summary>${rest.join("")}</details>`;
  const tone = rule.expected === null ? TONES[rule.outcome] : "mute";
  // The reason stands in the summary already.
  const said = about.filter(({ label }) => label !== "found");
  const citation = [`${rule.section})`, `${citationHtml(rule.section)})`] as const;
  return `<details class="card ${tone}" id="${rule.id}"${open ? " open" : ""}><summary><span class="id">${rule.id}</span><span class="title">${inlineCode(esc(rule.title))} <span class="chip c-mute">${rule.level}</span></span><span class="reason">${inlineCode(esc(rule.reason))}</span></summary><div class="in">${list(said, citation)}${shown.slice(0, PROBES_MAX).join("")}${raceHtml(rule.timeline)}${folded}${list(advice)}</div></details>`;
}
