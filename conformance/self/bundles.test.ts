import { expect, test } from "bun:test";
import fc from "fast-check";
import { bundlesOf, hiddenRules, together } from "./bundles.ts";
import type { Verdict } from "./case.ts";
import { hiddenLines, type Line, linesOf, PLAIN_VARIANT, shortLines } from "./matrix.ts";
import { type Deployment, PLAIN } from "./service/sound-options.ts";
import { VARIANTS, type Variant } from "./variants.ts";

const CHOICES = ["tag", "gzip", "head", "basePath", "putAnswer"] as const satisfies (keyof Deployment)[];

const variants = fc
  .array(
    fc.record({
      choices: fc.subarray([...CHOICES]),
      profile: fc.boolean(),
      restriction: fc.constantFrom<Partial<Variant>>(
        {},
        {},
        { alone: true },
        { given: true },
        { without: ["other"] },
        { undecided: [] },
      ),
    }),
  )
  .map((rows) =>
    rows.map(
      ({ choices, profile, restriction }, n): Variant => ({
        id: `v${n}`,
        does: "",
        deployment: Object.fromEntries(choices.map((choice) => [choice, PLAIN[choice]])),
        ...(profile ? { profile: "[json]" } : {}),
        ...restriction,
      }),
    ),
  );

/** What is wrong with the bundles that are made of them. */
function faultsOf(all: readonly Variant[]): string[] {
  const bundles = bundlesOf(all);
  const standing = bundles.flat().map(({ id }) => id);
  const isTwice = (each: string, index: number, list: readonly string[]) => list.indexOf(each) !== index;
  return [
    ...all.filter(({ id }) => !standing.includes(id)).map(({ id }) => `${id} stands in no bundle`),
    ...standing.filter(isTwice).map((id) => `${id} stands in two bundles`),
    ...bundles
      .flatMap((bundle) => bundle.flatMap(({ deployment }) => Object.keys(deployment)).filter(isTwice))
      .map((choice) => `${choice} is made twice in one bundle`),
    ...bundles
      .filter((bundle) => bundle.filter(({ profile }) => profile !== undefined).length > 1)
      .map(() => "a bundle has two profiles"),
    ...bundles
      .filter(({ length }) => length > 1)
      .flat()
      .filter(
        ({ alone, given, without, undecided, deployment }) =>
          [alone, given, without, undecided].some((each) => each !== undefined) ||
          Object.keys(deployment).length === 0,
      )
      .map(({ id }) => `${id} does not stand alone`),
  ];
}

test("each variant stands in one bundle, no bundle makes a choice twice, and what hides others stands alone", () => {
  expect(faultsOf(VARIANTS)).toEqual([]);
  fc.assert(fc.property(variants, (all) => expect(faultsOf(all)).toEqual([])));
});

test("a short run has a line for each bundle, and every other line of the matrix", () => {
  const short = shortLines([1]);
  const others = (lines: readonly Line[]) =>
    lines.flatMap(({ kind, id }) => (kind === "variant" ? [] : [`${kind} ${id}`])).toSorted();
  expect(others(short)).toEqual(others(linesOf([1])));
  expect(short.flatMap(({ bundle = [] }) => bundle).toSorted()).toEqual(
    VARIANTS.map(({ id }) => id).toSorted(),
  );
  expect(short.map(({ id }) => id)).toContain(PLAIN_VARIANT);
});

test("a bundle makes all of its choices, and only these", () => {
  for (const bundle of bundlesOf(VARIANTS)) {
    const { deployment, profile } = together(bundle);
    expect(Object.keys(deployment)).toHaveLength(
      bundle.reduce((sum, each) => sum + Object.keys(each.deployment).length, 0),
    );
    for (const each of bundle) expect(deployment).toMatchObject(each.deployment);
    expect(profile).toBe(bundle.find((each) => each.profile !== undefined)?.profile);
  }
});

const verdict = (id: string, given: Partial<Verdict> = {}): Verdict => ({
  kind: "variant",
  id,
  complaints: [],
  looked: ["ETG-01.etag", "ORD-05.gone", "AUT-08.refused", "AUT-08.same-words"],
  fired: [],
  outcomes: {},
  exitCode: 0,
  requests: 1,
  durationMs: 1,
  ...given,
});

test("what a bundle did not look at, or did not pass, each of its variants shows alone", () => {
  const plain = verdict(PLAIN_VARIANT);
  const [bundle = []] = bundlesOf(VARIANTS).filter(({ length }) => length > 1);
  const { id } = together(bundle);
  const hiding = verdict(id, {
    looked: ["ETG-01.etag", "AUT-08.refused"],
    outcomes: { "ORD-05": "not-applicable", "ORD-08": "warning" },
  });
  expect(hiddenRules(hiding, plain)).toEqual(["AUT-08", "ORD-05", "ORD-08"]);
  expect(hiddenLines([plain, hiding]).map((line) => [line.id, line.only])).toEqual(
    bundle.map((variant) => [variant.id, ["AUT-08", "ORD-05", "ORD-08"]]),
  );
  expect(hiddenLines([plain, verdict(id)])).toEqual([]);
  expect(hiddenLines([plain, { ...hiding, complaints: ["false violation"] }])).toEqual([]);
});
