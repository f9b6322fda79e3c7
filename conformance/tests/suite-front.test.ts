/** The bun test front, drawn from a report.json: one test a rule. */
import { afterAll, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import type { Outcome, Report } from "../report/schema.ts";
import { sampleReport, sampleRule } from "./sample-report.ts";
import { ended, Workplace } from "./testing-cli.ts";

const ROOT = new URL("../..", import.meta.url).pathname;
const place = new Workplace({});
afterAll(() => place.remove());

async function suite(report: Report | undefined) {
  if (report !== undefined) writeFileSync(place.path("report.json"), JSON.stringify(report));
  place.env["REPORT"] = report === undefined ? undefined : place.path("report.json");
  return await ended(
    Bun.spawn([process.execPath, "test", "./conformance/suite/"], {
      cwd: ROOT,
      env: place.env,
      stdio: ["ignore", "pipe", "pipe"],
    }),
  );
}

const conforming = (...outcomes: Outcome[]) =>
  sampleReport({ rules: outcomes.map(sampleRule), verdict: "conforms", exitCode: 0, headline: "Conforms." });

test("a run that conforms passes, one test a rule and one for the verdict", async () => {
  const { exitCode, stderr } = await suite(conforming("pass", "warning", "not-applicable"));
  expect(exitCode).toBe(0);
  expect(stderr).toContain("4 pass");
});

test.each(["violation", "kit-error", "could-not-run", "inconclusive"] as const)(
  "a rule that ended as %s fails in its own test, with the failure block",
  async (outcome) => {
    const { exitCode, stderr } = await suite(sampleReport({ rules: [sampleRule(outcome, 0)] }));
    expect(exitCode).toBe(1);
    expect(stderr).toContain("(fail) ETG-01 MUST");
    expect(stderr).toContain("impact");
  },
);

test("what could not run passes where the run allowed it", async () => {
  const report = conforming("could-not-run");
  const allowed = { ...report, options: { ...report.options, allowIncomplete: true } };
  expect((await suite(allowed)).exitCode).toBe(0);
});

test("without REPORT it says so and fails", async () => {
  const { exitCode, stderr } = await suite(undefined);
  expect(exitCode).toBe(1);
  expect(stderr).toContain("REPORT is not set");
});
