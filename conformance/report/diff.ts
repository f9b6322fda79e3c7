/** What became of each rule between two runs, as terminal text. */
import type { Report, RuleResult } from "./schema.ts";
import { visible } from "./visible.ts";

type Standing = "broken" | "held" | "not run";

type Change = "new" | "fixed" | "still broken" | "no longer run" | "newly run" | "same";

function standing(rule: RuleResult | undefined): Standing {
  if (rule === undefined) return "not run";
  if (rule.outcome === "violation" || rule.outcome === "warning") return "broken";
  return rule.outcome === "pass" ? "held" : "not run";
}

/** A rule that was broken and then was not run is not fixed: nobody looked. */
export function changeOf(older: RuleResult | undefined, newer: RuleResult | undefined): Change {
  const [then, now] = [standing(older), standing(newer)];
  if (now === "broken") return then === "broken" ? "still broken" : "new";
  if (now === "held") return then === "broken" ? "fixed" : then === "held" ? "same" : "newly run";
  return then === "not run" ? "same" : "no longer run";
}

const fired = (rule: RuleResult | undefined): string[] =>
  (rule?.assertions ?? []).filter((each) => each.fired > 0).map((each) => each.id);

function line(change: Change, older: RuleResult | undefined, newer: RuleResult | undefined): string {
  const rule = newer ?? older;
  if (rule === undefined) throw new Error("one of the two runs knows the rule");
  const title = `  ${rule.id} ${rule.title}`;
  if (change === "fixed" || change === "newly run") return title;
  if (change === "no longer run")
    return `${title}\n    ${newer === undefined ? "not selected" : `${newer.outcome}: ${newer.reason}`}`;
  const [before, after] = [fired(older), fired(newer)];
  const added = after.filter((id) => !before.includes(id));
  const gone = before.filter((id) => !after.includes(id));
  const moved =
    change === "still broken" && added.length + gone.length > 0
      ? `\n    unlike before:${added.map((id) => ` +${id}`).join("")}${gone.map((id) => ` -${id}`).join("")}`
      : "";
  return `${title}\n    ${rule.reason}${moved}`;
}

const SECTIONS: [Change, string][] = [
  ["new", "New"],
  ["still broken", "Still broken"],
  ["fixed", "Fixed"],
  ["no longer run", "No longer run"],
  ["newly run", "Newly run"],
];

function deploymentChanges(older: Report, newer: Report): string[] {
  const before = new Map(older.inferred.map(({ point, value }) => [point, value]));
  return newer.inferred
    .filter(({ point, value }) => before.has(point) && before.get(point) !== value)
    .map(({ point, value }) => `  ${point}: ${before.get(point)} -> ${value}`);
}

/** @returns lines for a terminal; never empty. */
export function diff(older: Report, newer: Report): string {
  const [then, now] = [older, newer].map((report) => new Map(report.rules.map((rule) => [rule.id, rule])));
  const ids = [...new Set([...newer.rules, ...older.rules].map((rule) => rule.id))];
  const lines = [
    `older: ${older.startedAt} ${older.target.baseUrl}: ${older.headline}`,
    `newer: ${newer.startedAt} ${newer.target.baseUrl}: ${newer.headline}`,
  ];
  if (older.target.baseUrl !== newer.target.baseUrl) lines.push("The two runs had different targets.");
  let changed = 0;
  for (const [change, title] of SECTIONS) {
    const rows = ids.filter((id) => changeOf(then?.get(id), now?.get(id)) === change);
    if (rows.length === 0) continue;
    changed += rows.length;
    lines.push(
      "",
      `${title} (${rows.length})`,
      ...rows.map((id) => line(change, then?.get(id), now?.get(id))),
    );
  }
  const points = deploymentChanges(older, newer);
  if (points.length > 0) lines.push("", `The deployment itself (${points.length})`, ...points);
  if (changed === 0)
    lines.push("", "Nothing changed: no rule is broken in either run, and the same rules were run.");
  return `${lines.map(visible).join("\n")}\n`;
}

/**
 * The exit code of a gate that fails on what is new.
 *
 * @returns 1 where a rule is newly violated, and no expectation covers it; the newer run's own code where it did not
 * come to a verdict; 3 where it no longer tested what the older run tested; else 0.
 */
export function gateExitCode(older: Report, newer: Report): number {
  const then = new Map(older.rules.map((rule) => [rule.id, rule]));
  const now = new Map(newer.rules.map((rule) => [rule.id, rule]));
  const isNew = newer.rules.some(
    ({ id, outcome, expected }) =>
      outcome === "violation" && expected === null && then.get(id)?.outcome !== "violation",
  );
  if (isNew) return 1;
  if (!["conforms", "violates", "incomplete"].includes(newer.verdict)) return newer.exitCode;
  const untested = older.rules.some((rule) => changeOf(rule, now.get(rule.id)) === "no longer run");
  return untested ? 3 : 0;
}
