/** A report with one rule of every outcome and hostile text in every place that a service can reach. For tests. */
import { FAMILIES, OUTCOMES, type Outcome, type Report, type RuleResult, SCHEMA } from "../report/schema.ts";

/** What a service may answer with; no report may be broken by it. */
export const HOSTILE = `</code><script>alert(1)</script>]]>&"'\`\`\`\u0000\u001b[31m\u202e|x\u00a0\ud800`;

export function sampleRule(outcome: Outcome, n: number): RuleResult {
  const family = FAMILIES[n % FAMILIES.length] ?? "IFM";
  const id = `${family}-${String(n + 1).padStart(2, "0")}`;
  const failing = outcome === "violation" || outcome === "warning";
  return {
    id,
    family,
    level: outcome === "warning" ? "SHOULD" : "MUST",
    title: `Rule number ${n + 1}`,
    section: "4.2",
    rule: "What the specification asks for.",
    impact: "What goes wrong for someone.",
    outcome,
    reason: `came otherwise ${HOSTILE}`,
    assertions: [
      {
        id: `${id}.status`,
        looked: 2,
        fired: failing ? 1 : 0,
        level: "MUST",
        detail: failing ? HOSTILE : null,
      },
    ],
    evidence: failing
      ? [
          {
            probe: "PUT with the current tag weakened",
            header: 'If-Match: W/"3"·',
            allowed: "412 and nothing changed",
            came: `204 ${HOSTILE}`,
            sent: 7,
            before: { status: 200, tag: '"3"', fields: { Name: HOSTILE } },
            after: { status: 200, tag: '"4"', fields: { Name: "x" } },
            unchanged: false,
            control: { differs: "W/ before the tag", n: 8, status: 204, ok: true },
            fired: [`${id}.status`],
          },
        ]
      : [],
    exchanges: failing
      ? [
          {
            n: 7,
            purpose: "probe",
            caller: "main",
            via: "socket",
            request: {
              method: "PUT",
              url: "http://127.0.0.1:1/customers/1",
              headers: [["If-Match", '  W/"3" ']],
              body: HOSTILE,
            },
            reply: { status: 204, headers: [["ETag", '"4"']], body: HOSTILE },
            failure: null,
            startedMs: 12,
            durationMs: 3,
          },
        ]
      : [],
    timeline: failing
      ? [
          {
            round: 1,
            lane: "writer 1",
            what: "PUT name=a",
            sentMs: 1,
            answeredMs: 4,
            status: 204,
            from: '"3"',
            to: '"4"',
            won: true,
          },
          {
            round: 1,
            lane: "writer 2",
            what: `PUT ${HOSTILE}`,
            sentMs: 1.2,
            answeredMs: 5,
            status: 204,
            from: '"3"',
            to: '"5"',
            won: true,
          },
          {
            round: 1,
            lane: "writer 3",
            what: "PUT name=c",
            sentMs: 1.1,
            answeredMs: null,
            status: null,
            from: '"3"',
            to: null,
            won: false,
          },
        ]
      : [],
    layer: failing ? { name: "nginx", sign: "Server: nginx", fix: "gzip off;" } : null,
    curl: failing ? "curl -i -X PUT -H 'If-Match: W/\"3\"' http://127.0.0.1:1/customers/1" : null,
    rerun: `conformance run --only ${id}`,
    expected: null,
    requests: 4,
    durationMs: 31,
  };
}

export function sampleReport(change: Partial<Report> = {}): Report {
  const rules = change.rules ?? OUTCOMES.map(sampleRule);
  const counts = Object.fromEntries(
    OUTCOMES.map((outcome) => [outcome, rules.filter((rule) => rule.outcome === outcome).length]),
  ) as Report["counts"];
  return {
    schema: SCHEMA,
    verdict: "kit-fault",
    exitCode: 5,
    headline: `One violation ${HOSTILE}`,
    counts,
    rules,
    notSelected: ["MET-08"],
    target: { baseUrl: "http://127.0.0.1:1", callers: ["main"], metricsUrls: [], via: ["nginx"] },
    inferred: [{ point: "casing", value: HOSTILE, evidence: "the first read" }],
    found: { names: null, patch: "unknown", patchMediaType: null, delete: "unknown" },
    options: {
      mode: "full",
      rounds: 20,
      connections: 8,
      ratePerSecond: null,
      budget: 20_000,
      exclusive: false,
      allowIncomplete: false,
      command: "conformance run --base-url http://127.0.0.1:1",
      arguments: ["--base-url", "http://127.0.0.1:1"],
    },
    races: [{ rule: "ATM-01", rounds: 20, overlapped: 19, unknown: 0, gapMs: 1.5, note: "a gap of 2 ms" }],
    fixtures: {
      made: 3,
      given: 0,
      removed: 2,
      restored: 0,
      left: [{ id: HOSTILE, why: HOSTILE }],
      keptByDesign: [],
      keptFailing: [],
    },
    ledger: [
      {
        n: 1,
        rule: "set-up",
        caller: "main",
        method: "GET",
        path: `/customers/${HOSTILE}`,
        status: 200,
        startedMs: 1,
        durationMs: 2,
      },
    ],
    trust: ["The kit caught every fault of its own matrix."],
    startedAt: "2026-11-27T22:00:00.000Z",
    durationMs: 4200,
    requests: 412,
    ...change,
  };
}
