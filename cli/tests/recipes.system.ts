/** The recipes run as they stand. Needs the Debian package jq. */
import { expect, test } from "bun:test";
import { runExamples } from "./support/page-examples.ts";

test("the recipes run in the order of the page, each in a shell of its own", async () => {
  const { exitCode, stderr, server } = await runExamples("docs/recipes.md", true);
  expect({ exitCode, end: exitCode === 0 ? "" : stderr.slice(-2000) }).toEqual({ exitCode: 0, end: "" });
  expect(server.all().map(({ name, status }) => [name, status])).toEqual([["Ada Lovelace", "suspended"]]);
}, 120_000);
