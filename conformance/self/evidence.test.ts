/** The check of the evidence finds a violation that shows another exchange than the one that broke the rule. */
import { expect, test } from "bun:test";
import type { Evidence, Exchange, RuleResult } from "../report/schema.ts";
import { sampleReport, sampleRule } from "../tests/sample-report.ts";
import { evidenceFaults } from "./evidence.ts";

const PROBE = "PUT with the current tag weakened";
const sample = sampleRule("violation", 1);
const [shown] = sample.exchanges;
const [finding] = sample.evidence;
if (shown === undefined || finding === undefined) throw new Error("the sample shows nothing");

const EXCHANGE: Exchange = {
  ...shown,
  request: { ...shown.request, headers: [["If-Match", 'W/"3"']] },
};
const CONTROL: Exchange = { ...EXCHANGE, n: 8 };
const EVIDENCE: Evidence = { ...finding, header: 'If-Match: W/"3"', came: '204, ETag "4"' };

function faults(
  evidence: Partial<Evidence> = {},
  exchange: Partial<Exchange> = {},
  { detail = `${PROBE} was answered 204, not 412`, id = sample.id } = {},
): string[] {
  const rule: RuleResult = {
    ...sample,
    id,
    assertions: sample.assertions.map((each) => ({ ...each, detail })),
    evidence: [{ ...EVIDENCE, ...evidence }],
    exchanges: [{ ...EXCHANGE, ...exchange }, CONTROL],
  };
  return evidenceFaults(sampleReport({ rules: [rule] }));
}

const request = (method: string) => ({ request: { ...EXCHANGE.request, method } });
const asPost = "PUT with no If-Match, as POST with ?_method=PUT";
const control = { differs: "W/ before the tag", n: 8, status: 204, ok: true };

test("evidence that shows what the finding speaks of is right", () => {
  expect(faults()).toEqual([]);
  expect(faults({ probe: asPost }, request("POST"))).toEqual([]);
  const scrape = { ...request("GET"), purpose: "scrape", reply: { status: 200, headers: [], body: "" } };
  expect(faults({ header: null, came: "rose by 2" }, scrape, { id: "MET-01" })).toEqual([]);
});

test.each<[string, string[]]>([
  ["shows no exchange", faults({ sent: 99 })],
  ["shows no exchange", faults({ fired: [] })],
  ["is a POST", faults({}, request("POST"))],
  ["is a PUT", faults({ probe: asPost })],
  ["is a scrape", faults({}, { purpose: "scrape" })],
  ["was answered 204, not 428", faults({ came: "428, no ETag" })],
  ['did not carry If-Match: "3"', faults({ header: 'If-Match: "3"' })],
  ["says 428", faults({}, {}, { detail: `${PROBE} was answered 428, not 412` })],
  ["control request", faults({ control: { ...control, n: 99 } })],
  ["control request", faults({ control: { ...control, status: 200 } })],
  ["show no change", faults({ fired: [`${sample.id}.status`, `${sample.id}.unchanged`], unchanged: true })],
])("evidence is wrong: %s", (what, found) => {
  expect(found.join("\n")).toContain(what);
});
