import { expect, test } from "bun:test";
import { existsSync } from "node:fs";
import type { TSchema } from "@sinclair/typebox";
import { Glob } from "bun";
import { referenceTables } from "../commands/reference.ts";
import { makeProgram } from "../program.ts";
import { rulesMarkdown } from "../report/rule-listing.ts";
import { OUTCOMES, Report } from "../report/schema.ts";
import { catalogue } from "../rules/catalogue.ts";
import { ProfileFile } from "../target/profile-file.ts";

const here = (name: string) => Bun.file(new URL(`../${name}`, import.meta.url)).text();

/** The outline of the specification: every item that holds a normative sentence, in its order. */
const OUTLINE = [
  ...items("1.", 6),
  ..."Id,Name,Email,Status,CreatedAt,RowVersion,casing".split(",").map((name) => `2.1 ${name}`),
  ..."registry,case,explicit".split(",").map((name) => `2.2 ${name}`),
  "2.3 Name",
  "2.3 Email",
  ...items("2.4.", 7),
  ..."GET,PUT equal,PUT differs,PUT without".split(",").map((name) => `3 ${name}`),
  "3 PATCH, DELETE",
  ..."id,fields,body,200,404,400".split(",").map((name) => `4.1 ${name}`),
  ...items("4.1 rule ", 9),
  ..."id,If-Match,body,204,404,412,428".split(",").map((name) => `4.2 ${name}`),
  ...items("4.2 order ", 4),
  ..."trim,exact,list,atomic".split(",").map((name) => `4.2 rule ${name}`),
  ..."same,partial,payload".split(",").map((name) => `4.3 ${name}`),
  "4.4",
  ...items("5.", 6),
  "6",
  ..."400,404,412,428".split(",").map((status) => `7 status ${status}`),
  ...items("7 rule ", 7),
  ...items("8.", 3),
  ...items("9.", 3),
];

function items(prefix: string, count: number): string[] {
  return Array.from({ length: count }, (_, index) => `${prefix}${index + 1}`);
}

async function tableRows(): Promise<{ sentence: string; by: string }[]> {
  const section = await here("docs/coverage.md");
  return section
    .split("\n")
    .filter((line) => line.startsWith("| ") && !line.startsWith("| sentence"))
    .map((line) => line.split("|").map((cell) => cell.trim()))
    .map(([, sentence = "", , by = ""]) => ({ sentence, by }));
}

/** Ids in a cell; `IFM-31 to IFM-35` stands for all between. */
function idsIn(text: string): string[] {
  const ranges = [...text.matchAll(/([A-Z]{3})-(\d\d) to \1-(\d\d)/g)].flatMap(([, family, from, to]) =>
    catalogue.map(({ id }) => id).filter((id) => id >= `${family}-${from}` && id <= `${family}-${to}`),
  );
  return [...new Set([...ranges, ...(text.match(/\b[A-Z]{3}-\d\d\b/g) ?? [])])];
}

test("the table holds every sentence of the specification once, in its order", async () => {
  expect((await tableRows()).map(({ sentence }) => sentence)).toEqual(OUTLINE);
});

test("each row names rules that exist, or a reason", async () => {
  const known = new Set<string>(catalogue.map(({ id }) => id));
  for (const { sentence, by } of await tableRows()) {
    expect(by.length, sentence).toBeGreaterThan(5);
    for (const id of idsIn(by)) expect(known.has(id), `${sentence}: ${id}`).toBe(true);
  }
});

test("every rule stands for a sentence of the table", async () => {
  const named = new Set((await tableRows()).flatMap(({ by }) => idsIn(by)));
  expect(catalogue.map(({ id }) => id as string).filter((id) => !named.has(id))).toEqual([]);
});

test("RULES.md is current: bun conformance/main.ts rules --markdown > conformance/RULES.md", async () => {
  expect(await here("RULES.md")).toBe(rulesMarkdown());
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
