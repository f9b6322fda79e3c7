import { expect, test } from "bun:test";
import { catalogue } from "../rules/catalogue.ts";
import counts from "../run/proven.json" with { type: "json" };
import { WEATHERS } from "./environments.ts";
import { FAULTS } from "./faults.ts";
import { difference, readGolden } from "./golden.ts";
import { missed, mutants, proven } from "./mutants.ts";
import { TARGETS } from "./targets.ts";
import { VARIANTS } from "./variants.ts";

const RULES = new Set<string>(catalogue.map(({ id }) => id));
const golden = await readGolden();

test("ids are permanent words, each given once; rules are those of the catalogue", () => {
  const ids = [...FAULTS, ...VARIANTS, ...TARGETS, ...WEATHERS].map(({ id }) => id);
  expect(ids.filter((id) => !/^[a-z0-9]+(-[a-z0-9]+)*$/.test(id))).toEqual([]);
  expect(ids.filter((id, n) => ids.indexOf(id) !== n)).toEqual([]);
  const named = FAULTS.flatMap(({ rule, alsoRun = [] }) => [rule, ...alsoRun]);
  expect(named.filter((rule) => !RULES.has(rule))).toEqual([]);
});

test("golden.json pins every fault and no other, and each trips the rule that it is said to break", () => {
  expect(Object.keys(golden.faults)).toEqual(FAULTS.map(({ id }) => id));
  const lost = missed(golden);
  const elsewhere = FAULTS.filter(
    (fault) =>
      fault.comesAndGoes !== true &&
      !lost.includes(fault) &&
      golden.faults[fault.id]?.some((id) => id.startsWith(fault.rule)) !== true,
  );
  expect(elsewhere.map(({ id, rule }) => `${id}: not ${rule}`)).toEqual([]);
});

test("every rule is proven by a fault that it fails on", () => {
  const proven = new Set(Object.values(golden.faults).flatMap((ids) => ids.map((id) => id.slice(0, 6))));
  expect([...RULES].filter((rule) => !proven.has(rule))).toEqual([]);
});

test("what fires beyond the pinned assertions, and what no longer fires, are differences", () => {
  expect(difference(["ETG-01.etag", "ATM-01.no-fork?"], ["ETG-01.etag"])).toEqual([]);
  expect(difference(["ETG-01.etag"], ["ETG-01.etag", "ETG-02.syntax"])).toHaveLength(1);
  expect(difference(["ETG-01.etag"], [])).toHaveLength(1);
  expect(difference(undefined, [])).toHaveLength(1);
  expect(difference(["ETG-01.etag?"], ["ETG-02.syntax"])).toEqual([]);
  expect(difference(["ETG-01.etag?"], [])).toHaveLength(1);
});

test("MUTANTS.md and proven.json are what `bun run conformance:self` would write", async () => {
  const written = await Bun.file(new URL("../MUTANTS.md", import.meta.url)).text();
  expect(mutants(golden)).toBe(written);
  expect(proven(golden)).toEqual(counts);
});
