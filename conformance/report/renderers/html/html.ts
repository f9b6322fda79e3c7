/** The report as one page: it needs no script and no network, and everything on it is in report.json. */
import { amount } from "../../amount.ts";
import { causesFirst } from "../../causes.ts";
import { caveats, customerNote, groupsByReason, OVERLAP, rulesWith } from "../../finding.ts";
import { FAMILY_TITLES } from "../../rule-listing.ts";
import { FAMILIES, OUTCOMES, type Report, type RuleResult } from "../../schema.ts";
import { escapeMarkup as esc, inlineCode } from "../../visible.ts";
import { chip, findingHtml, TONES, type Tone } from "./html-finding.ts";
import { raceHtml } from "./html-race.ts";
import { STYLE } from "./html-style.ts";
import { citationHtml, specificationHtml } from "./specification-html.ts";

/** Rows of the ledger that a page holds; report.json holds all. */
const LEDGER_MAX = 5000;
const OPEN_MAX = 3;

const VERDICTS: Record<Report["verdict"], { word: string; tone: Tone }> = {
  conforms: { word: "Conforms", tone: "good" },
  violates: { word: "Violates the specification", tone: "bad" },
  incomplete: { word: "Incomplete", tone: "warn" },
  unreachable: { word: "Not tested: unreachable or refused", tone: "bad" },
  "fixtures-left": { word: "Left customers behind", tone: "warn" },
  "kit-fault": { word: "Fault of the kit", tone: "kit" },
  interrupted: { word: "Interrupted", tone: "warn" },
};

const seconds = (ms: number): string => (ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`);

/** One without content is left out; the note stands behind the title. */
type Section = readonly [id: string, title: string, html: string, note?: string | number];

function table(heads: [text: string, cls?: string][], rows: string[][], cls = ""): string {
  const cell = (tag: "td" | "th", text: string, n: number) => {
    const name = heads[n]?.[1];
    return `<${tag}${name === undefined ? "" : ` class="${name}"`}>${text}</${tag}>`;
  };
  const head = heads.map(([text], n) => cell("th", text, n)).join("");
  const body = rows.map((row) => `<tr>${row.map((text, n) => cell("td", text, n)).join("")}</tr>`).join("");
  return `<div class="card scroll"><table${cls === "" ? "" : ` class="${cls}"`}><thead><tr>${head}</tr></thead><tbody>${body}</tbody></table></div>`;
}

function cover(report: Report): string {
  const { word, tone } = VERDICTS[report.verdict];
  const shown = OUTCOMES.filter((outcome) => report.counts[outcome] > 0);
  const bar = shown
    .map((outcome) => `<i class="t-${TONES[outcome]}" style="flex:${report.counts[outcome]}"></i>`)
    .join("");
  const keys = shown.map(
    (outcome) =>
      `<li><span class="dot t-${TONES[outcome]}"></span><b>${report.counts[outcome]}</b> ${outcome.replaceAll("-", " ")}</li>`,
  );
  const warned = caveats(report)
    .map((each) => `<p class="caveat">${esc(each)}</p>`)
    .join("");
  const facts: [string, string][] = [
    ["target", report.target.baseUrl],
    ["callers", report.target.callers.join(", ")],
    ["begun", report.startedAt.replace("T", " ").replace(/(?:\.\d+)?Z$/, " UTC")],
    ["took", seconds(report.durationMs)],
    ["requests", String(report.requests)],
    ["mode", report.options.mode],
    ["exit code", String(report.exitCode)],
  ];
  if (report.target.proxy !== undefined) facts.push(["proxy", report.target.proxy]);
  if (report.target.via.length > 0) facts.push(["seen on the way", report.target.via.join(", ")]);
  return `<header class="cover ${tone}"><div><p class="eyebrow">Customer resource: conformance</p><h1>${word}</h1><p class="headline">${inlineCode(esc(report.headline))}</p>${warned}<div class="bar" role="img" aria-label="${shown.map((outcome) => `${report.counts[outcome]} ${outcome}`).join(", ")}">${bar}</div><ul class="keys">${keys.join("")}</ul><ul class="facts">${facts.map(([name, value]) => `<li>${name} <b>${esc(value)}</b></li>`).join("")}</ul></div></header>`;
}

function findings(rules: readonly RuleResult[], open: number): string {
  return rules.map((rule, n) => findingHtml(rule, n < open)).join("");
}

function families(report: Report): string {
  return FAMILIES.map((family) => {
    const rules = report.rules.filter((rule) => rule.family === family);
    if (rules.length === 0) return "";
    const passed = rules.filter((rule) => rule.outcome === "pass").length;
    const rows = rules.map((rule) => {
      const linked = rule.evidence.length > 0 ? `<a href="#${rule.id}">${rule.id}</a>` : rule.id;
      return [
        linked,
        inlineCode(esc(rule.title)),
        `<span class="chip c-mute">${rule.level}</span>`,
        chip(rule.outcome),
        citationHtml(rule.section),
      ];
    });
    return `<h3>${family} <small>${FAMILY_TITLES[family]}: ${passed} of ${rules.length} pass</small></h3>${table([["id", "k"], ["title"], ["level", "k"], ["outcome", "k"], ["specification", "k"]], rows, "stack")}`;
  }).join("");
}

function races(report: Report): string {
  if (report.races.length === 0) return "";
  const rows = report.races.map((race) => [
    race.rule,
    String(race.rounds),
    String(race.overlapped),
    String(race.unknown),
    race.gapMs === null ? "" : `${race.gapMs.toFixed(2)} ms`,
  ]);
  const heads: [string, string?][] = [
    ["rule", "k"],
    ["rounds", "n"],
    ["overlapped", "n"],
    ["unknown", "n"],
    ["last bytes left within", "n"],
  ];
  const calm = report.rules.filter(
    (rule) => rule.timeline.length > 0 && rule.outcome !== "violation" && rule.outcome !== "warning",
  );
  const lines = calm.map(
    (rule) =>
      `<details class="card mute"><summary><span class="id">${rule.id}</span><span class="title">${esc(rule.title)} ${chip(rule.outcome)}</span></summary><div class="in">${raceHtml(rule.timeline)}</div></details>`,
  );
  return `${table(heads, rows, "stack")}<p class="legend">${esc(OVERLAP)}</p>${lines.join("")}`;
}

function groups(report: Report, rules: readonly RuleResult[]): string {
  if (rules.length === 0) return "";
  const rows = groupsByReason(rules, report.rules).map(({ reason, rules: members, names }) => [
    flags(inlineCode(esc(reason))),
    [...new Set(members.map(({ outcome }) => outcome))].map(chip).join(" "),
    names.map((name) => `<span class="one">${esc(name)}</span>`).join(" "),
    String(members.length),
  ]);
  return table([["why"], ["outcome", "k"], ["rules"], ["count", "n"]], rows, "stack");
}

/** A flag in a sentence is what its reader will type. */
const flags = (markup: string): string => markup.replace(/--[a-z][a-z-]+/g, '<code class="one">$&</code>');

function leftOut(report: Report): string {
  const unselected =
    report.notSelected.length === 0
      ? ""
      : `<p>Not selected by <code>--only</code> or <code>--skip</code>: ${report.notSelected.map(esc).join(" ")}</p>`;
  return groups(report, rulesWith(report, "not-applicable")) + unselected;
}

function fixtures(report: Report): string {
  const { made, given, removed, restored, left, keptByDesign } = report.fixtures;
  const said = `${amount(made, "customer")} made, ${given} given, ${removed} removed, ${restored} put back as they were.`;
  const kept =
    keptByDesign.length === 0
      ? ""
      : `<p>Kept, since the deployment offers no DELETE: ${keptByDesign.map((id) => `<code>${esc(id)}</code>`).join(" ")}</p>`;
  const rows = left.map(({ id, why }) => [`<code>${esc(id)}</code>`, esc(why)]);
  const note = customerNote(report);
  const hint = note === undefined ? "" : `<p>${flags(inlineCode(esc(note)))}</p>`;
  const unsettled =
    rows.length === 0 ? "" : `<h3 class="no">Left behind</h3>${table([["id"], ["why"]], rows, "stack")}`;
  return `<p>${said}</p>${kept}${hint}${unsettled}`;
}

function trust(report: Report): string {
  if (report.trust.length === 0) return "";
  return `<ul>${report.trust.map((each) => `<li>${inlineCode(esc(each))}</li>`).join("")}</ul>`;
}

function ledger(report: Report): string {
  const rows = report.ledger
    .slice(0, LEDGER_MAX)
    .map((each) => [
      String(each.n),
      esc(each.rule),
      esc(each.caller),
      `<span class="mono">${esc(`${each.method} ${each.path}`)}</span>`,
      each.status === null ? "none" : String(each.status),
      each.startedMs.toFixed(0),
      each.durationMs.toFixed(1),
    ]);
  const rest = report.ledger.length - rows.length;
  const more = rest > 0 ? `<p class="legend">${rest} more in report.json.</p>` : "";
  const heads: [string, string?][] = [
    ["n", "n"],
    ["for", "k"],
    ["caller", "k"],
    ["request"],
    ["status", "n"],
    ["at ms", "n"],
    ["took ms", "n"],
  ];
  return `<details class="card mute"><summary><span class="id">${report.ledger.length}</span><span class="title">requests, in order</span></summary>${table(heads, rows)}${more}</details>`;
}

function deployment({ inferred }: Report): string {
  if (inferred.length === 0) return `<p class="empty">Nothing was inferred.</p>`;
  const rows = inferred.map(({ point, value, evidence }) => [
    esc(point),
    `<code>${esc(value)}</code>`,
    esc(evidence),
  ]);
  return table([["point"], ["value"], ["evidence"]], rows, "stack");
}

export function html(report: Report): string {
  const violations = causesFirst(report, rulesWith(report, "violation"));
  const faults = rulesWith(report, "kit-error");
  const warnings = rulesWith(report, "warning");
  const untested = rulesWith(report, "could-not-run", "inconclusive");
  const absent = report.counts["not-applicable"] + report.notSelected.length;
  // What matters first: what is broken, then what nobody knows, then the rest.
  const all: readonly Section[] = [
    ["violations", "Violations", findings(violations, OPEN_MAX), violations.length],
    ["kit-errors", "Faults of the kit", findings(faults, OPEN_MAX), faults.length],
    [
      "untested",
      "Could not be tested",
      groups(report, untested),
      `${amount(untested.length, "rule")}, grouped by reason`,
    ],
    ["warnings", "Warnings", findings(warnings, 0), warnings.length],
    ["rules", "Rules by family", families(report)],
    ["left-out", "Not applicable or not selected", leftOut(report), absent],
    ["races", "Races", races(report), "requests that were open at once"],
    ["deployment", "The deployment, as found", deployment(report)],
    ["fixtures", "Customers of this run", fixtures(report)],
    ["trust", "How far this can be trusted", trust(report)],
    ["ledger", "Ledger of requests", ledger(report), report.requests],
    ["specification", "The specification", specificationHtml()],
  ];
  const sections = all.filter(([, , content]) => content !== "");
  const links = sections.map(([id, title]) => `<a href="#${id}">${title}</a>`).join("");
  const body = sections
    .map(
      ([id, title, content, note]) =>
        `<section id="${id}"><h2>${title}${note === undefined ? "" : ` <small>${note}</small>`}</h2>${content}</section>`,
    )
    .join("\n");
  const policy = "default-src 'none'; style-src 'unsafe-inline'";
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1"><meta http-equiv="Content-Security-Policy" content="${policy}"><title>${VERDICTS[report.verdict].word}: ${esc(report.target.baseUrl)}</title><style>${STYLE}</style></head>
<body>${cover(report)}<nav><div>${links}</div></nav><main>${body}<footer>Made by <code>${esc(report.options.command)}</code>; ${report.options.rounds} rounds on ${report.options.connections} connections. Drawn from report.json alone.</footer></main></body></html>
`;
}
