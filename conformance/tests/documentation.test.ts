import { expect, test } from "bun:test";
import { existsSync } from "node:fs";
import type { TSchema } from "@sinclair/typebox";
import { Glob } from "bun";
import { makeProgram } from "../program.ts";
import { coverage, coverageMarkdown } from "../report/coverage.ts";
import { rulesMarkdown } from "../report/rule-listing.ts";
import { OUTCOMES, Report } from "../report/schema.ts";
import { catalogue } from "../rules/catalogue.ts";
import { spec } from "../specification/spec.ts";
import { UNTESTED } from "../specification/untested.ts";
import { ProfileFile } from "../target/profile-file.ts";
import { referenceTables } from "./reference-tables.ts";

const here = (name: string) => Bun.file(new URL(`../${name}`, import.meta.url)).text();

test("every sentence that the specification is quoted with has a rule, and every rule quotes one", () => {
  const quoted = new Set<string>(catalogue.flatMap(({ spec }) => spec));
  expect(Object.keys(spec).filter((key) => !quoted.has(key))).toEqual([]);
  expect(catalogue.filter(({ spec }) => spec.length === 0).map(({ id }) => id)).toEqual([]);
});

test("a rule is named in `after` only where it exists, and none waits for itself", () => {
  const ids = new Set<string>(catalogue.map(({ id }) => id));
  for (const { id, after } of catalogue) {
    expect(after.filter((each) => !ids.has(each))).toEqual([]);
    expect(after).not.toContain(id);
  }
});

test("RULES.md is current: bun conformance/main.ts rules --markdown > conformance/RULES.md", async () => {
  expect(await here("RULES.md")).toBe(rulesMarkdown());
});

test("docs/coverage.md is current: bun conformance/main.ts rules --coverage > conformance/docs/coverage.md", async () => {
  expect(await here("docs/coverage.md")).toBe(coverageMarkdown());
});

test("every line of the specification has a rule, or the reason why none tests it", () => {
  const lost = coverage().filter(({ rules, reason }) => rules.length === 0 && reason === undefined);
  expect(lost.map(({ line }) => line)).toEqual([]);
  const lines = coverage().map(({ line }) => line);
  const idle = Object.keys(UNTESTED).filter((beginning) => !lines.some((line) => line.startsWith(beginning)));
  expect(idle).toEqual([]);
});

test("report.schema.json is the schema of the code", async () => {
  expect(JSON.parse(await here("report/report.schema.json"))).toEqual(JSON.parse(JSON.stringify(Report)));
});

test("docs/reference.md holds the tables of the code", async () => {
  expect(await here("docs/reference.md")).toContain(referenceTables(makeProgram(() => undefined)));
});

test("docs/reference.md names every outcome and every key of a profile", async () => {
  const text = await here("docs/reference.md");
  for (const outcome of OUTCOMES) expect(text).toContain(`| \`${outcome}\` |`);
  const tables = Object.entries<TSchema>(ProfileFile.properties).map(([name, schema]) => [
    name,
    ...Object.keys(schema["properties"] ?? {}).filter((key) => key !== "headers"),
  ]);
  for (const [name = "", ...keys] of tables) {
    const row = text
      .split("\n")
      .filter((line) => line.includes(`[${name}`) || line.startsWith(`| \`${name}\``));
    expect(row, name).not.toEqual([]);
    for (const key of keys) expect(row.join("\n"), `${name}.${key}`).toMatch(new RegExp(`[ \`]${key}\``));
  }
});

const PAGES = ["README.md", ...new Glob("docs/*.md").scanSync(new URL("..", import.meta.url).pathname)];

test.each(PAGES)("%s: every link leads to a file, and every command line parses", async (page) => {
  const text = await here(page);
  for (const [, link = ""] of text.matchAll(/\]\(([^)#:]+)(?:#[^)]*)?\)/g))
    expect(existsSync(new URL(link, new URL(`../${page}`, import.meta.url))), link).toBe(true);
  for (const [, words = ""] of text.matchAll(/bun run conformance ([^\n`]*)/g)) {
    const used = words.match(/--[a-z][a-z-]+/g) ?? [];
    const command = makeProgram(() => undefined).commands.find((each) => each.name() === words.split(" ")[0]);
    expect(
      command?.options.map(({ long }) => long),
      words,
    ).toEqual(expect.arrayContaining(used));
  }
});

test("ids are permanent in form, titles and texts are there, no id is given twice", () => {
  const ids = catalogue.map(({ id }) => id);
  expect(new Set(ids).size).toBe(ids.length);
  for (const { id, title, hurts } of catalogue) {
    expect(id).toMatch(/^[A-Z]{3}-\d\d$/);
    for (const text of [title, hurts]) expect(text.length).toBeGreaterThan(0);
  }
});
