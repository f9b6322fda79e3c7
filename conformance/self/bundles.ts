/**
 * Bundles: sound variants that choose independently, put together in one service. A short run tests these, at the price of
 * one variant each. What a choice hides from the others of its bundle is run for each of them alone afterwards.
 */
import type { Verdict } from "./case.ts";
import type { Variant } from "./variants.ts";

const choicesOf = ({ deployment, profile }: Variant): string[] => [
  ...Object.keys(deployment),
  ...(profile === undefined ? [] : ["profile"]),
];

/** It has no choice to share, or one that would change how the others of a bundle are run. */
const isAlone = ({ deployment, alone, without, undecided, given }: Variant): boolean =>
  Object.keys(deployment).length === 0 ||
  [alone, without, undecided, given].some((restriction) => restriction !== undefined);

/** Each variant stands in one bundle, and no bundle makes one choice twice. */
export function bundlesOf(variants: readonly Variant[]): Variant[][] {
  const shared = variants.filter((variant) => !isAlone(variant));
  const contest = (variant: Variant) =>
    Math.max(...choicesOf(variant).map((choice) => shared.filter((each) => clash(each, [choice])).length));
  const bundles: Variant[][] = [];
  // The choice that most variants make opens the bundles; the others go where the fewest are, so that little is hidden.
  for (const variant of shared.toSorted((a, b) => contest(b) - contest(a))) {
    const fitting = bundles.filter((bundle) => !bundle.some((each) => clash(each, choicesOf(variant))));
    const [smallest] = fitting.toSorted((a, b) => a.length - b.length);
    if (smallest === undefined) bundles.push([variant]);
    else smallest.push(variant);
  }
  return [...variants.filter(isAlone).map((variant) => [variant]), ...bundles];
}

const clash = (variant: Variant, choices: readonly string[]): boolean =>
  choicesOf(variant).some((choice) => choices.includes(choice));

export const bundleId = (ids: readonly string[]): string => ids.join(" + ");

/** One deployment that makes the choices of all. */
export function together(bundle: readonly Variant[]): Variant {
  const profile = bundle.find((variant) => variant.profile !== undefined)?.profile;
  return {
    id: bundleId(bundle.map(({ id }) => id)),
    does: bundle.map(({ does }) => does).join("; "),
    deployment: Object.assign({}, ...bundle.map(({ deployment }) => deployment)),
    ...(profile === undefined ? {} : { profile }),
    warns: bundle.flatMap(({ warns = [] }) => warns),
  };
}

/** Rules that a bundle did not pass, and those that it looked at less closely than the run of the plain deployment. */
export function hiddenRules(bundle: Verdict, plain: Verdict): string[] {
  const unlooked = plain.looked.filter((assertion) => !bundle.looked.includes(assertion));
  return [...new Set([...Object.keys(bundle.outcomes), ...unlooked.map((id) => id.slice(0, 6))])].sort();
}
