/**
 * SARIF 2.1.0 (OASIS), for code scanning. A finding of a running service has no line of source; viewers want
 * a place all the same, so that of the rule in RULES.md is given, and the request and the reply stand in
 * `webRequest` and `webResponse`, which SARIF has for just this.
 */

import { VERSION } from "../../version.ts";
import { caveats, findingOf, findingText, rulesWith } from "../finding.ts";
import { rulesMarkdown } from "../rule-listing.ts";
import type { Exchange, Report, RuleResult } from "../schema.ts";
import { visible, visibleValue } from "../visible.ts";

const SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json";

const pairs = (headers: [string, string][]): Record<string, string> => {
  const joined: Record<string, string> = {};
  for (const [name, value] of headers) {
    const shown = visibleValue(value);
    joined[name] = joined[name] === undefined ? shown : `${joined[name]}, ${shown}`;
  }
  return joined;
};

function web({ request, reply }: Exchange): Record<string, unknown> {
  return {
    webRequest: {
      protocol: "HTTP",
      version: "1.1",
      method: request.method,
      target: request.url,
      headers: pairs(request.headers),
      ...(request.body === null ? {} : { body: { text: visible(request.body) } }),
    },
    webResponse:
      reply === null
        ? { noResponseReceived: true }
        : {
            protocol: "HTTP",
            version: "1.1",
            statusCode: reply.status,
            headers: pairs(reply.headers),
            body: { text: visible(reply.body) },
          },
  };
}

function result(rule: RuleResult, ruleIndex: number, report: Report): Record<string, unknown> {
  const exchange = findingOf(rule).probes.find((probe) => probe.exchange !== undefined)?.exchange;
  const fired = rule.assertions.filter((each) => each.fired > 0).map((each) => each.id);
  return {
    ruleId: rule.id,
    ruleIndex,
    level: rule.outcome === "warning" ? "warning" : "error",
    message: { text: visible(`${rule.title}: ${rule.reason}\n${findingText(rule).join("\n")}`) },
    locations: [
      {
        physicalLocation: {
          artifactLocation: { uri: "conformance/RULES.md" },
          region: { startLine: lineOf(rule.id) },
        },
        logicalLocations: [
          { name: rule.id, fullyQualifiedName: `${report.target.baseUrl} ${rule.id}`, kind: "resource" },
        ],
      },
    ],
    partialFingerprints: { "ruleAndAssertions/v1": [rule.id, ...fired].join(" ") },
    ...(rule.expected === null
      ? {}
      : {
          suppressions: [
            {
              kind: "external",
              justification: `${rule.expected.reason} (${rule.expected.owner}, until ${rule.expected.until})`,
            },
          ],
        }),
    ...(exchange === undefined ? {} : web(exchange)),
  };
}

const LINES = rulesMarkdown().split("\n");

/** Where RULES.md speaks of a rule; its first line for one of another version. */
function lineOf(id: string): number {
  return (
    Math.max(
      0,
      LINES.findIndex((line) => line.startsWith(`### ${id} `)),
    ) + 1
  );
}

/** The base URL without its scheme, as a path: `staging.example/api`. */
function deploymentOf({ target }: Report): string {
  return visible(target.baseUrl).replace(/^https?:\/\//, "");
}

export function sarif(report: Report): string {
  const reported = rulesWith(report, "violation", "warning");
  const undecided = rulesWith(report, "kit-error", "could-not-run", "inconclusive");
  const log = {
    $schema: SCHEMA,
    version: "2.1.0",
    runs: [
      {
        // One id per deployment: a new upload replaces the results of this deployment and leaves the others alone.
        automationDetails: { id: `customers-conformance/${deploymentOf(report)}/` },
        tool: {
          driver: {
            name: "customers-conformance",
            version: VERSION,
            semanticVersion: VERSION,
            informationUri: "https://www.rfc-editor.org/rfc/rfc9110#section-13.1.1",
            rules: report.rules.map((rule) => ({
              id: rule.id,
              name: rule.title,
              shortDescription: { text: rule.title },
              fullDescription: { text: `${rule.rule} (specification ${rule.section})` },
              help: { text: `${rule.impact}\n${rule.rerun}` },
              defaultConfiguration: { level: rule.level === "MUST" ? "error" : "warning" },
              properties: { tags: [rule.family, rule.level] },
            })),
          },
        },
        invocations: [
          {
            executionSuccessful: report.verdict !== "kit-fault" && report.verdict !== "unreachable",
            exitCode: report.exitCode,
            exitCodeDescription: report.headline,
            commandLine: report.options.command,
            startTimeUtc: report.startedAt,
            toolConfigurationNotifications: caveats(report).map((text) => ({
              level: "warning",
              message: { text },
            })),
            toolExecutionNotifications: undecided.map((rule) => ({
              level: rule.outcome === "kit-error" ? "error" : "warning",
              message: { text: visible(`${rule.id} ${rule.outcome}: ${rule.reason}`) },
              associatedRule: { id: rule.id },
            })),
          },
        ],
        results: reported.map((rule) => result(rule, report.rules.indexOf(rule), report)),
      },
    ],
  };
  return `${JSON.stringify(log, null, 2)}\n`;
}
