/**
 * The documents are kept true: their examples run, their links lead somewhere, and the reference is
 * generated.
 */
import { describe, expect, test } from "bun:test";
import { existsSync, readdirSync } from "node:fs";
import type { CommandUnknownOpts } from "@commander-js/extra-typings";
import { OUTPUT_FORMATS } from "../config/flags.ts";
import { referencePage, visibleCommands } from "../help/reference.ts";
import { addCommands, customersProgram } from "../program.ts";
import { TOKEN } from "./support/dialect.ts";
import { runExamples } from "./support/page-examples.ts";

const CLI = new URL("../", import.meta.url);
const PAGES = [
  "README.md",
  ...readdirSync(new URL("docs/", CLI))
    .filter((name) => name.endsWith(".md"))
    .map((name) => `docs/${name}`),
];
const textOf = (page: string) => Bun.file(new URL(page, CLI)).text();

const PROGRAM: CommandUnknownOpts = customersProgram();
await addCommands(PROGRAM, () => async () => {});

test("the reference is what the program says: bun cli/docs/write-reference.ts writes it anew", async () => {
  expect(await textOf("docs/reference.md")).toBe(referencePage(PROGRAM));
});

test.each(visibleCommands(PROGRAM).map((command) => [command.name(), command] as const))(
  "the command %s is described, and so is each of its options",
  (_, command) => {
    expect(command.description()).not.toBe("");
    for (const { description, flags } of command.options)
      expect([flags, description]).not.toEqual([flags, ""]);
  },
);

test.each([...OUTPUT_FORMATS])("the page on output has the format %s", async (format) => {
  expect(await textOf("docs/output.md")).toContain(`| \`${format}\` |`);
});

describe.each(PAGES)("%s", (page) => {
  test("leads to pages that exist", async () => {
    for (const [, link = ""] of (await textOf(page)).matchAll(/\]\(([^)#]+)(?:#[^)]*)?\)/g)) {
      expect([link, existsSync(new URL(link, new URL(page, CLI)))]).toEqual([link, true]);
    }
  });
});

test.each([
  ["README.md", 8, []],
  ["docs/connecting.md", 5, []],
  ["docs/bulk.md", 4, ["Mary Godwin", "Jane Austen"]],
  ["docs/output.md", 3, ["Ada Lovelace"]],
  ["docs/conflicts.md", 4, ["Ada King", "Grace Hopper"]],
])("the examples of %s run, in the order of the page", async (page, blocks, names) => {
  const run = await runExamples(page);
  const end = run.exitCode === 0 ? "" : run.stderr.slice(-2000);
  expect({ exitCode: run.exitCode, end }).toEqual({ exitCode: 0, end: "" });
  expect(run.blocks).toBeGreaterThanOrEqual(blocks);
  expect(run.stdout + run.stderr).not.toContain(TOKEN);
  expect(run.server.all().map(({ name }) => name)).toEqual(names);
});
