import { expect, test } from "bun:test";
import { catalogue } from "../rules/catalogue.ts";
import { CONSEQUENCES } from "./consequences.ts";
import { FAULTS } from "./faults.ts";
import { mutants } from "./mutants.ts";
import { TARGETS } from "./targets.ts";
import { VARIANTS } from "./variants.ts";

const RULES = new Set<string>(catalogue.map(({ id }) => id));

test("there are faults of every rule, at least 80 in all, and at least 14 variants and 12 targets", () => {
  expect(FAULTS.length).toBeGreaterThanOrEqual(80);
  expect(VARIANTS.length).toBeGreaterThanOrEqual(14);
  expect(TARGETS.length).toBeGreaterThanOrEqual(12);
  const covered = new Set(FAULTS.map(({ rule }) => rule));
  expect([...RULES].filter((rule) => !covered.has(rule))).toEqual([]);
});

test("ids are permanent words, each given once; rules are those of the catalogue", () => {
  const ids = [...FAULTS, ...VARIANTS, ...TARGETS].map(({ id }) => id);
  expect(ids.filter((id) => !/^[a-z0-9]+(-[a-z0-9]+)*$/.test(id))).toEqual([]);
  expect(ids.filter((id, n) => ids.indexOf(id) !== n)).toEqual([]);
  expect(FAULTS.filter(({ rule }) => !RULES.has(rule)).map(({ id }) => id)).toEqual([]);
});

test("the table of consequences speaks of faults and rules that exist, and never of a fault's own rule", () => {
  const byId = new Map(FAULTS.map((fault) => [fault.id, fault]));
  for (const [id, rules] of Object.entries(CONSEQUENCES)) {
    expect(byId.has(id) ? id : `${id} is no fault`).toBe(id);
    expect(rules.filter((rule) => !RULES.has(rule))).toEqual([]);
    expect(rules).not.toContain(byId.get(id)?.rule);
  }
});

test("MUTANTS.md is what `bun run conformance:self` would write of the faults, variants and targets that there are", async () => {
  const written = await Bun.file(new URL("../MUTANTS.md", import.meta.url)).text();
  expect(mutants()).toBe(written);
});
