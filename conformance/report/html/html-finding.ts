/** One finding of the HTML page: what was sent, allowed, came, and stood afterwards. */
import type { Evidence, Exchange, Outcome, RuleResult, State } from "../schema.ts";
import { escapeMarkup as esc, visibleValue } from "../visible.ts";
import { raceHtml } from "./html-race.ts";

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

const row = (term: string, description: string | undefined): string =>
  description === undefined || description === "" ? "" : `<dt>${term}</dt><dd>${description}</dd>`;

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

function state(name: string, value: State | null): string {
  if (value === null) return "";
  const fields = value.fields === null ? "" : ` <code>${esc(JSON.stringify(value.fields))}</code>`;
  return row(
    name,
    `${value.status}, ETag ${value.tag === null ? "none" : `<code>${esc(visibleValue(value.tag))}</code>`}${fields}`,
  );
}

function probe(rule: RuleResult, evidence: Evidence): string {
  const exchange = rule.exchanges.find(({ n }) => n === evidence.sent);
  const { twin, unchanged } = evidence;
  const kept =
    unchanged === null
      ? ""
      : unchanged
        ? `<span class="yes">unchanged</span>`
        : `<span class="no">changed</span>`;
  return `<div class="probe"><dl class="say">${[
    row("Tried", esc(evidence.probe)),
    row("Odd in it", evidence.odd === null ? "" : `<code>${esc(evidence.odd)}</code>`),
    row("Allowed", esc(evidence.allowed)),
    row("Came", `<b>${esc(evidence.came)}</b>`),
    row("State after", kept),
    state("Read before", evidence.before),
    state("Read after", evidence.after),
    row(
      "Twin",
      twin === null
        ? ""
        : `${twin.ok ? "was accepted" : "failed as well"} (${twin.status}, request ${twin.n}); it differs in: ${esc(twin.differs)}`,
    ),
    row("Assertions", evidence.fired.map((id) => `<code>${esc(id)}</code>`).join(" ")),
  ].join(
    "",
  )}</dl>${exchange === undefined ? "" : `<details><summary>request ${exchange.n} and its reply</summary>${message(exchange)}</details>`}</div>`;
}

/** @param open the first findings stand open; a page of fifty would not be read. */
export function findingHtml(rule: RuleResult, open: boolean): string {
  const { layer, expected } = rule;
  const probes = rule.evidence.map((each) => probe(rule, each));
  const rest = probes.slice(PROBES_MAX);
  const folded =
    rest.length === 0
      ? ""
      : `<details class="more"><summary>${rest.length} more probes of this rule fired</summary>${rest.join("")}</details>`;
  const known =
    expected === null
      ? ""
      : `Expected until ${esc(expected.until)} by ${esc(expected.owner)}: ${esc(expected.reason)}`;
  return `<details class="card ${expected === null ? TONES[rule.outcome] : "mute"}" id="${rule.id}"${open ? " open" : ""}><summary><span class="id">${rule.id}</span><span class="title">${esc(rule.title)} <span class="chip c-mute">${rule.level}</span></span><span class="reason">${esc(rule.reason)}</span></summary><div class="in"><dl class="say">${[
    row("Rule", `${esc(rule.rule)} (specification ${esc(rule.section)})`),
    row("Impact", esc(rule.impact)),
    row("Layer", layer === null ? "" : `<b>${esc(layer.name)}</b>: ${esc(layer.sign)}`),
    row("Mend", layer === null ? "" : `<code>${esc(layer.mending)}</code>`),
    row("Known", known),
  ].join(
    "",
  )}</dl>${probes.slice(0, PROBES_MAX).join("")}${raceHtml(rule.timeline)}${folded}<dl class="say">${[
    row("By hand", rule.curl === null ? "" : `<pre><code>${esc(rule.curl)}</code></pre>`),
    row("Again", `<code>${esc(rule.again)}</code>`),
  ].join("")}</dl></div></details>`;
}
