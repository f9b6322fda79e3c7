import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ProfileFault } from "../target/profile.ts";
import { sampleReport } from "../tests/sample-report.ts";
import { readReport } from "./report-file.ts";

const folder = mkdtempSync(join(tmpdir(), "kit-report-"));
afterAll(() => rmSync(folder, { recursive: true }));

function written(value: unknown): string {
  const path = join(folder, "report.json");
  writeFileSync(path, typeof value === "string" ? value : JSON.stringify(value));
  return path;
}

test("a report of this schema is read", () => {
  expect(readReport(written(sampleReport()))).toEqual(sampleReport());
});

test.each([
  ["another schema", { ...sampleReport(), schema: "customers-conformance/2" }, "/schema"],
  ["a member that no schema knows", { ...sampleReport(), extra: 1 }, "/extra"],
  ["no JSON", "{", "report.json of a run"],
])("%s is refused, and the fault names it", (_, value, says) => {
  const faults = (() => {
    try {
      readReport(written(value));
      return [];
    } catch (error) {
      return error instanceof ProfileFault ? error.faults : [];
    }
  })();
  expect(faults.join("")).toContain(says);
});
