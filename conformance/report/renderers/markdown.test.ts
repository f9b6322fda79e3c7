import { expect, test } from "bun:test";
import { sampleReport, sampleRule } from "../../tests/sample-report.ts";
import { markdown } from "./markdown.ts";

test("verdict, counts, findings and what was not tested stand in it", () => {
  const text = markdown(sampleReport());
  expect(text).toStartWith("## ❌ One violation");
  for (const heading of [
    "Violations (1)",
    "Warnings (1)",
    "Faults of the kit (1)",
    "Not tested (3)",
    "Left behind",
  ]) {
    expect(text).toContain(`### ${heading}`);
  }
});

test("text of the service cannot leave its block, cell or tag", () => {
  const text = markdown(sampleReport());
  const outside = text.replace(/(`{3,})text\n[\s\S]*?\n\1(?=\n)/g, "");
  expect(outside).not.toContain("<script");
  expect(text).toMatch(/\n`{4}text\n/); // the hostile text holds a run of three
  for (const row of outside.split("\n").filter((line) => /^\| came otherwise/.test(line))) {
    expect(row.match(/(?<!\\)\|/g)).toHaveLength(4);
  }
});

test("a thousand findings stay within what a step summary holds", () => {
  const rules = Array.from({ length: 1000 }, (_, n) => sampleRule("violation", n % 90));
  const text = markdown(sampleReport({ rules }));
  expect(Buffer.byteLength(text)).toBeLessThan(1024 * 1024);
  expect(text).toContain("and 940 more");
});
