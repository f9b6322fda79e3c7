import { expect, test } from "bun:test";
import { sampleReport, sampleRule } from "../../tests/sample-report.ts";
import { sarif } from "./sarif.ts";

type Log = {
  version: string;
  runs: [
    {
      automationDetails: { id: string };
      tool: { driver: { version: string; rules: { id: string }[] } };
      invocations: [
        {
          exitCode: number;
          executionSuccessful: boolean;
          toolExecutionNotifications: { associatedRule: { id: string } }[];
        },
      ];
      results: {
        ruleId: string;
        ruleIndex: number;
        level: string;
        message: { text: string };
        locations: {
          physicalLocation: { artifactLocation: { uri: string }; region: { startLine: number } };
        }[];
        suppressions?: unknown[];
        webResponse?: { statusCode: number };
      }[];
    },
  ];
};

const parse = (text: string) => JSON.parse(text) as Log;

test("violations are errors, warnings are warnings, and each points at its rule", () => {
  const [run] = parse(sarif(sampleReport())).runs;
  expect(run.results.map((each) => each.level)).toEqual(["error", "warning"]);
  for (const result of run.results) {
    expect(run.tool.driver.rules[result.ruleIndex]?.id).toBe(result.ruleId);
    expect(result.locations[0]?.physicalLocation.artifactLocation.uri).toBe("conformance/RULES.md");
    expect(result.webResponse?.statusCode).toBe(204);
  }
});

test("the place of a result is the line of its rule", async () => {
  const lines = (await Bun.file(new URL("../../RULES.md", import.meta.url)).text()).split("\n");
  const { rules } = sampleReport();
  const [run] = parse(sarif(sampleReport({ rules: rules.map((rule) => ({ ...rule, id: "IFM-12" })) }))).runs;
  for (const { locations } of run.results)
    expect(lines[(locations[0]?.physicalLocation.region.startLine ?? 0) - 1]).toStartWith("### IFM-12 ");
});

test("what was not decided is a notification, never as a result", () => {
  const [run] = parse(sarif(sampleReport())).runs;
  expect(run.invocations[0].toolExecutionNotifications).toHaveLength(3);
  expect(run.invocations[0].executionSuccessful).toBe(false);
});

test("results belong to one deployment and one version of the kit", () => {
  const ids = ["https://staging.example/api", "https://live.example"].map((baseUrl) => {
    const report = sampleReport();
    const [run] = parse(sarif({ ...report, target: { ...report.target, baseUrl } })).runs;
    expect(run.tool.driver.version).toMatch(/^\d+\.\d+\.\d+/);
    return run.automationDetails.id;
  });
  expect(ids).toEqual(["customers-conformance/staging.example/api/", "customers-conformance/live.example/"]);
});

test("an expected violation is suppressed, not left out", () => {
  const rule = {
    ...sampleRule("violation", 1),
    expected: { reason: "ticket", owner: "team", until: "2027-01-01" },
  };
  expect(parse(sarif(sampleReport({ rules: [rule] }))).runs[0].results[0]?.suppressions).toHaveLength(1);
});
