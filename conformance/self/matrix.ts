/** The lines of the self-test, and how one is run. */

import { catalogue } from "../rules/catalogue.ts";
import { bundleId, bundlesOf, hiddenRules, together } from "./bundles.ts";
import { runFault, runTarget, runVariant, runWeather, type Verdict } from "./case.ts";
import { WEATHERS } from "./environments.ts";
import { FAULTS } from "./faults.ts";
import { difference, type Golden } from "./golden.ts";
import { TARGETS } from "./targets.ts";
import { VARIANTS, type Variant } from "./variants.ts";

/**
 * `only`: rules or families; all when absent. `seed` decides when weather turns. `bundle`: the variants that are put together.
 * `isShort`: a variant in a short run.
 */
export type Line = {
  kind: Verdict["kind"];
  id: string;
  seed?: number;
  only?: readonly string[];
  bundle?: readonly string[];
  isShort?: boolean;
};

/** The sound service as it is; what a bundle hides shows beside it. */
export const PLAIN_VARIANT = "as-sampled";

/** `slow` answers each request 25 ms late, which takes 90 s; the others wait 20 s for counts. */
const LONGEST = ["slow", "counters-sampled", "counters-sampled-by-8"];

/** Faults of these rules wait for counts, or for writes that show late. */
const WAITING = /^(?:ENV|MET)-|^FLD-21$/;

/**
 * The lines of a short run. The longest come first, then those that run whole or wait: no thread is left with a long one at
 * the end. Lines of one family wait alike, so neighbours are kept apart, and others work meanwhile.
 */
export function shortLines(seeds: readonly number[]): Line[] {
  const others = linesOf(seeds).filter(({ kind }) => kind !== "variant");
  const lines = [
    ...others.map(shortened),
    ...bundlesOf(VARIANTS).map((bundle) => bundleLine(bundle.map(({ id }) => id))),
  ];
  const isLongest = ({ id }: Line) => LONGEST.includes(id);
  const isLong = ({ kind, only = [] }: Line) => kind !== "fault" || only.some((rule) => WAITING.test(rule));
  const rest = lines.filter((line) => !isLongest(line));
  return [
    ...lines.filter(isLongest),
    ...spread(rest.filter(isLong)),
    ...spread(rest.filter((line) => !isLong(line))),
  ];
}

const SPREAD = 8;

const spread = (lines: readonly Line[]): Line[] =>
  Array.from({ length: SPREAD }, (_, first) => lines.filter((_, n) => n % SPREAD === first)).flat();

function bundleLine(bundle: readonly string[]): Line {
  return { kind: "variant", id: bundleId(bundle), bundle, isShort: true };
}

/** The variants of a bundle one by one, to show which of them a complaint is about; none of a line that is no bundle. */
export const apartLines = ({ bundle = [] }: Line): Line[] =>
  bundle.length < 2 ? [] : bundle.map((id) => ({ kind: "variant", id, isShort: true }));

/** What each variant of a bundle still has to show alone. Where a bundle has a complaint they run apart anyway. */
export function hiddenLines(verdicts: readonly Verdict[]): Line[] {
  const verdictOf = (id: string) => verdicts.find((each) => each.kind === "variant" && each.id === id);
  const plain = verdictOf(PLAIN_VARIANT);
  return bundlesOf(VARIANTS).flatMap((bundle) => {
    const line = bundleLine(bundle.map(({ id }) => id));
    const verdict = verdictOf(line.id);
    if (plain === undefined || verdict === undefined || verdict.complaints.length > 0) return [];
    const only = hiddenRules(verdict, plain);
    return only.length === 0 ? [] : apartLines(line).map((each) => ({ ...each, only }));
  });
}

/** A fault against the rule that it breaks first, those that bring it about, and those that these stand behind. */
function shortened(line: Line): Line {
  const fault = line.kind === "fault" ? FAULTS.find(({ id }) => id === line.id) : undefined;
  if (fault === undefined) return line;
  const rules = new Set([fault.rule, ...(fault.alsoRun ?? [])]);
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

function variantOf(bundle: readonly string[]): Variant {
  const [only, ...others] = bundle.map((id) => named(VARIANTS, id));
  if (only === undefined) throw new Error("a bundle needs a variant");
  return others.length === 0 ? only : together([only, ...others]);
}

export async function runLine({
  kind,
  id,
  seed = 0,
  only,
  bundle = [id],
  isShort = false,
}: Line): Promise<Verdict> {
  switch (kind) {
    case "fault":
      return await runFault(named(FAULTS, id), only);
    case "variant":
      return await runVariant(variantOf(bundle), only, isShort ? "quick" : "full");
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
