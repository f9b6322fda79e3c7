import { expect, test } from "bun:test";
import { catalogue } from "../../../rules/catalogue.ts";
import { citationHtml, specificationHtml } from "./specification-html.ts";

test("the whole specification stands in it, and no id twice", () => {
  const html = specificationHtml();
  const ids = [...html.matchAll(/ id="([^"]*)"/g)].map(([, id]) => id);
  expect(new Set(ids).size).toBe(ids.length);
  expect(html).toContain("Comparison is exact, case-sensitive string equality, including the quotes.");
  expect(html).not.toMatch(/`|^#|\|/m);
});

test.each([
  ["4.1 rule 6", "spec-4.1-rule-6"],
  ["7 rule 4", "spec-7-rule-4"],
  ["2.4.6", "spec-2.4.6"],
  ["4.2 order 2", "spec-4.2-order-2"],
  ["1.3", "spec-1.3"],
  ["4.2 list", "spec-4.2"],
  ["4.2", "spec-4.2"],
])("%s is found at %s", (place, anchor) => {
  expect(citationHtml(place)).toBe(`<a href="#${anchor}">${place}</a>`);
  expect(specificationHtml()).toContain(` id="${anchor}"`);
});

test("every rule cites a place that is there", () => {
  for (const { spec } of catalogue)
    for (const place of spec) expect(citationHtml(place), place).toStartWith("<a ");
});
