import { expect, test } from "bun:test";
import { sampleReport, sampleRule } from "../../../tests/sample-report.ts";
import { html } from "./html.ts";

const page = html(sampleReport());

test("the page asks for nothing: no script, no request, no element that a service put there", () => {
  expect(page).not.toContain("<script");
  expect(page).not.toMatch(/<(?:img|link|iframe|object|embed|base|form)\b/);
  expect(page).not.toMatch(/\b(?:src|href|action)="(?!#)/);
  expect(page).not.toMatch(/\bon\w+="/);
  expect(page).not.toMatch(/url\(|@import/);
});

test("everything that a reader looks for is on it", () => {
  for (const id of [
    "violations",
    "warnings",
    "kit-errors",
    "rules",
    "races",
    "deployment",
    "untested",
    "left-out",
    "specification",
    "trust",
    "fixtures",
    "ledger",
  ]) {
    expect(page).toContain(`<section id="${id}">`);
    expect(page).toContain(`<a href="#${id}">`);
  }
  expect(page).toContain("gzip off;");
  expect(page).toContain("The kit caught every fault");
});

test("every link leads somewhere, and no id stands twice", () => {
  const ids = [...page.matchAll(/ id="([^"]*)"/g)].map(([, id]) => id);
  expect(new Set(ids).size).toBe(ids.length);
  for (const [, target] of page.matchAll(/href="#([^"]*)"/g)) expect(ids).toContain(target);
});

test("two writes accepted from one tag are drawn as odd, one without an answer as open", () => {
  const svg = /<svg class="race"[\s\S]*?<\/svg>/.exec(page)?.[0] ?? "";
  expect(svg.match(/class="odd"/g)).toHaveLength(2);
  expect(svg.match(/class="open"/g)).toHaveLength(1);
});

test("an unreachable target reads red, never green", () => {
  const unreachable = html(
    sampleReport({ rules: [sampleRule("could-not-run", 0)], verdict: "unreachable", exitCode: 4 }),
  );
  expect(unreachable).toContain('<header class="cover bad">');
  expect(unreachable).toContain("Not tested");
});

test("tags are balanced", () => {
  const open: string[] = [];
  for (const [, closing, name = "", rest = ""] of page
    .replace(/<style>[\s\S]*?<\/style>/, "")
    .matchAll(/<(\/?)([a-z0-9]+)((?:"[^"]*"|[^>"])*)>/g)) {
    if (/^(meta|i)$/.test(name) && name === "meta") continue;
    if (rest.endsWith("/")) continue;
    if (closing === "") open.push(name);
    else expect(open.pop()).toBe(name);
  }
  expect(open).toEqual([]);
});
