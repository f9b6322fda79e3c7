import { readFileSync } from "node:fs";
import { type Measure, shown } from "./measure.ts";

/** How much worse a measure may be: on two shared cores the median of some rounds varies by a tenth. */
const WORSE_MAX = 0.15;

/** @param path of a report that the benchmark kept as JSON */
export function measuresOf(path: string): readonly Measure[] {
  return (JSON.parse(readFileSync(path, "utf8")) as { measures: Measure[] }).measures;
}

/**
 * What was measured before and now, for the measures that have something to reach: of the others
 * nobody knows which direction is worse.
 *
 * @returns a table, and the names of those that are more than 15 % worse
 */
export function comparison(
  before: readonly Measure[],
  now: readonly Measure[],
): { readonly text: string; readonly worse: readonly string[] } {
  const worse: string[] = [];
  const rows = now.flatMap((measure) => {
    const { what, against, goal, median, unit } = measure;
    const earlier = before.find((other) => other.what === what && other.against === against);
    if (earlier === undefined || goal === "") return [];
    const better = goal.startsWith("≥") ? median / earlier.median : earlier.median / median;
    const isWorse = better < 1 - WORSE_MAX;
    if (isWorse) worse.push(`${what} ${against}`);
    const verdict = isWorse ? "worse" : better > 1 + WORSE_MAX ? "better" : "";
    return [
      `| ${what} | ${against} | ${shown(earlier.median)} ${unit} | ${shown(median)} ${unit} | ${shown(better)} | ${verdict} |`,
    ];
  });
  if (rows.length === 0) throw new Error("the two reports have no measure in common");
  const head = [
    "| measure | against | before | now | now ÷ before, above 1 is better | |",
    "|---|---|---|---|---|---|",
  ];
  return { text: [...head, ...rows, ""].join("\n"), worse };
}
