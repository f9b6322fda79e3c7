/** The lines of the self-test, and how one is run. */

import { catalogue } from "../rules/catalogue.ts";
import { runFault, runTarget, runVariant, runWeather, type Verdict } from "./case.ts";
import { WEATHERS } from "./environments.ts";
import { FAULTS } from "./faults.ts";
import { difference, type Golden } from "./golden.ts";
import { TARGETS } from "./targets.ts";
import { VARIANTS } from "./variants.ts";

/** `only`: rules or families; all when absent. `seed` decides when weather turns. `isShort`: a variant in a short run. */
export type Line = {
  kind: Verdict["kind"];
  id: string;
  seed?: number;
  only?: readonly string[];
  isShort?: boolean;
};

/**
 * A fault against the rule that it breaks first, and those that this one stands behind; a variant in a short run. What the
 * kit misses, or meets by chance, stays whole.
 */
export function shortened(line: Line): Line {
  if (line.kind === "variant") return { ...line, isShort: true };
  const fault = line.kind === "fault" ? FAULTS.find(({ id }) => id === line.id) : undefined;
  if (fault === undefined || fault.comesAndGoes) return line;
  const rules = new Set([fault.rule]);
  // A set goes on to what is added to it on the way.
  for (const id of rules)
    for (const before of catalogue.find((rule) => rule.id === id)?.after ?? []) rules.add(before);
  return { ...line, only: [...rules] };
}

/** @param seeds each weather is run once with each of them */
export function linesOf(seeds: readonly number[]): Line[] {
  return [
    // First: they wait more than they work.
    ...TARGETS.map(({ id }): Line => ({ kind: "target", id })),
    ...WEATHERS.flatMap(({ id }) => seeds.map((seed): Line => ({ kind: "weather", id, seed }))),
    ...FAULTS.map(({ id }): Line => ({ kind: "fault", id })),
    ...VARIANTS.map(({ id }): Line => ({ kind: "variant", id })),
  ];
}

function named<T extends { id: string }>(list: readonly T[], id: string): T {
  const found = list.find((each) => each.id === id);
  if (found === undefined) throw new Error(`no line of the matrix is called ${id}`);
  return found;
}

export async function runLine({ kind, id, seed = 0, only, isShort = false }: Line): Promise<Verdict> {
  switch (kind) {
    case "fault":
      return await runFault(named(FAULTS, id), only);
    case "variant":
      return await runVariant(named(VARIANTS, id), only, isShort ? "quick" : "full");
    case "weather":
      return await runWeather(named(WEATHERS, id), seed, only);
    case "target":
      return await runTarget(named(TARGETS, id), only);
  }
}

/** What is wrong with a verdict: its own complaints, and for a fault how it differs from golden.json. */
export function complaintsOf(verdict: Verdict, golden: Golden, only?: readonly string[]): string[] {
  if (verdict.kind !== "fault") return verdict.complaints;
  const pinned = golden.faults[verdict.id];
  const selected = pinned?.filter(
    (id) => only === undefined || only.some((each) => id.startsWith(`${each}.`) || id.startsWith(`${each}-`)),
  );
  return [...verdict.complaints, ...difference(selected, verdict.fired)];
}
