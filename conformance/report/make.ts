/** From what a run found to report.json: counts, verdict and exit code. */

import type { Deployment } from "../fixtures/deployment.ts";
import type { Ground } from "../fixtures/ground.ts";
import { headerValue } from "../http/http-reply.ts";
import type { Pointer } from "../http/outcome-signal.ts";
import type { Wire } from "../http/wire.ts";
import type { Attempt } from "../probe/attempt.ts";
import type { Rule } from "../probe/rule.ts";
import { sentenceOf } from "../specification/spec.ts";
import type { RunOptions } from "../target/options.ts";
import type { Profile } from "../target/profile.ts";
import { proxyFor } from "../target/proxy.ts";
import { causesOf } from "./causes.ts";
import { commandLine, commandLineFor } from "./command-line.ts";
import { curlLine } from "./curl.ts";
import { layerOf } from "./layer.ts";
import {
  type Evidence,
  type Exchange,
  type Family,
  OUTCOMES,
  type Outcome,
  type Report,
  type RuleResult,
  SCHEMA,
} from "./schema.ts";
import { judge } from "./verdict.ts";

export type Finding = {
  readonly rule: Rule;
  readonly outcome: Outcome;
  readonly reason: string;
  /** What a could-not-run points to. */
  readonly pointer: Pointer;
  readonly trial: Attempt | undefined;
  readonly durationMs: number;
  readonly requests: number;
};

export type RunFacts = {
  readonly profile: Profile;
  readonly options: RunOptions;
  readonly wire: Wire;
  readonly ground: Ground;
  readonly deployment: Deployment;
  readonly startedAt: Date;
  readonly races: Report["races"];
  readonly findings: Finding[];
  readonly notSelected: readonly string[];
  unreachable: string | undefined;
  interrupted: boolean;
  kitFault: string | undefined;
};

const EVIDENCE_MAX = 6;
const MOMENTS_MAX = 60;

export function makeReport(facts: RunFacts): Report {
  const { profile, options, wire, ground, deployment } = facts;
  const proxy = proxyFor(profile.proxy, new URL(profile.baseUrl));
  const today = new Date().toISOString().slice(0, 10);
  const passed = new Set(
    facts.findings.filter(({ outcome }) => outcome === "pass").map(({ rule }) => rule.id),
  );
  const rules = facts.findings.map((finding) => ruleResult(finding, facts, passed, today));
  const counts = Object.fromEntries(
    OUTCOMES.map((outcome) => [outcome, rules.filter((rule) => rule.outcome === outcome).length]),
  ) as Report["counts"];
  const causes = causesOf(facts.findings);
  const { verdict, exitCode, headline } = judge({
    rules,
    causes,
    expected: options.expected,
    allowIncomplete: options.allowIncomplete,
    left: ground.fixtures.left.length,
    interrupted: facts.interrupted,
    kitFault: facts.kitFault,
    unreachable: facts.unreachable,
  });
  return {
    schema: SCHEMA,
    verdict,
    exitCode,
    headline: wire.mask(headline),
    counts,
    rules,
    ...(causes.length > 0 ? { causes } : {}),
    notSelected: [...facts.notSelected],
    target: {
      baseUrl: wire.mask(profile.baseUrl),
      callers: [
        "main",
        ...(profile.limited === undefined ? [] : ["limited"]),
        ...(profile.otherTenant === undefined ? [] : ["other-tenant"]),
      ],
      metricsUrls: profile.metrics.urls.map(wire.mask),
      ...(proxy === undefined ? {} : { proxy: proxy.host }),
      ...(profile.tls.insecure ? { insecure: true } : {}),
      via: [...intermediaries(facts)],
    },
    inferred: deployment.inferred.map(({ point, value, evidence }) => ({
      point,
      value: wire.mask(value),
      evidence,
    })),
    found: deployment.found,
    options: {
      mode: options.mode,
      rounds: options.rounds,
      connections: options.connections,
      ratePerSecond: options.rate ?? profile.rate ?? null,
      budget: options.budget,
      exclusive: options.exclusive,
      ...(options.gentle ? { gentle: true } : {}),
      allowIncomplete: options.allowIncomplete,
      command: wire.mask(commandLine(options.program, options.arguments)),
      arguments: options.arguments.map(wire.mask),
    },
    races: facts.races,
    fixtures: ground.fixtures,
    ledger: wire.ledger,
    trust: [...options.trust],
    startedAt: facts.startedAt.toISOString(),
    durationMs: performance.now() - wire.startedAt,
    requests: wire.requests,
  };
}

function ruleResult(
  { rule, outcome, reason, pointer, trial, durationMs, requests }: Finding,
  facts: RunFacts,
  passed: ReadonlySet<string>,
  today: string,
): RuleResult {
  const failed = outcome === "violation" || outcome === "warning";
  const fired = failed ? (trial?.evidence ?? []).filter((each) => each.fired.length > 0) : [];
  const evidence = shownEvidence(fired);
  const omitted = fired.length - evidence.length;
  const shown = omitted > 0 ? `; ${evidence.length} of ${fired.length} failing probes are shown` : "";
  const exchanges = failed ? shownExchanges(trial, evidence) : [];
  const main = exchanges.find(({ n }) => n === evidence[0]?.sent);
  // What expected violations hide is expected with them.
  const counted =
    outcome === "violation" ? [rule.id] : outcome === "could-not-run" ? [...(trial?.maskedBy ?? [])] : [];
  const expectations = counted.map((id) =>
    facts.options.expected.find((entry) => entry.rule === id && entry.until >= today),
  );
  const [expectation] = expectations.includes(undefined) ? [] : expectations;
  return {
    id: rule.id,
    family: rule.id.slice(0, 3) as Family,
    // A warning of a MUST rule comes from an assertion that is a SHOULD.
    level: outcome === "warning" ? "SHOULD" : rule.level,
    title: rule.title,
    section: rule.spec.join(", "),
    rule: [...rule.spec.map((key) => `“${sentenceOf(key)}”`), rule.reading]
      .filter((text) => text !== "")
      .join(" "),
    impact: rule.hurts,
    outcome,
    reason: `${reason || outcome}${shown}${pointed(pointer, passed)}`,
    assertions: [...(trial?.assertions.values() ?? [])],
    ...(trial !== undefined && trial.leftOut.length > 0 ? { leftOut: [...trial.leftOut] } : {}),
    evidence,
    ...(omitted > 0 ? { evidenceOmitted: omitted } : {}),
    exchanges,
    timeline: failed ? (trial?.timeline ?? []).slice(0, MOMENTS_MAX) : [],
    layer: failed ? layerOf(rule.id, exchanges) : null,
    curl:
      main === undefined
        ? null
        : curlLine(
            main,
            exchanges.find(({ n }) => n === main.follows),
          ),
    rerun: facts.wire.mask(commandLineFor(facts.options.program, rule.id, facts.options.arguments)),
    expected:
      expectation !== undefined
        ? { reason: expectation.reason, owner: expectation.owner, until: expectation.until }
        : null,
    requests,
    durationMs,
  };
}

/**
 * One that points to a rule which passed would send its reader the wrong way: what this rule met, the other did not,
 * so it comes and goes.
 */
function pointed({ see = [] }: Pointer, passed: ReadonlySet<string>): string {
  if (see.length === 0) return "";
  const guilty = see.filter((id) => !passed.has(id));
  if (guilty.length > 0) return `; see ${guilty.join(" and ")}`;
  return `; ${see.join(" and ")} passed, so it is not always so`;
}

/** The first proof of every assertion that fired, and of the others as many as a reader takes in. */
function shownEvidence(firing: readonly Evidence[]): Evidence[] {
  const first = new Set(
    firing.flatMap(({ fired }) => fired).map((id) => firing.find(({ fired }) => fired.includes(id))),
  );
  return firing.filter((each, index) => first.has(each) || index < EVIDENCE_MAX);
}

/** The exchanges that the evidence refers to, and the reads just before and after them. */
function shownExchanges(trial: Attempt | undefined, evidence: Attempt["evidence"]): Exchange[] {
  if (trial === undefined) return [];
  const wanted = new Set(evidence.flatMap(({ sent, control }) => [sent, control?.n]));
  for (const { n, follows } of trial.exchanges.values()) if (wanted.has(n)) wanted.add(follows);
  for (const { sent } of evidence)
    if (sent !== null) for (const near of [sent - 1, sent + 1]) wanted.add(near);
  return [...trial.exchanges.values()].filter(({ n }) => wanted.has(n));
}

/** What stands between, as far as replies tell. */
function intermediaries({ findings }: RunFacts): Set<string> {
  const found = new Set<string>();
  for (const { trial } of findings) {
    for (const { reply } of trial?.exchanges.values() ?? []) {
      for (const name of ["via", "server", "x-cache", "x-varnish", "cf-ray", "x-served-by"]) {
        const value = headerValue(reply?.headers ?? [], name);
        if (value !== undefined)
          found.add(name === "x-varnish" || name === "cf-ray" ? name : `${name}: ${value}`);
      }
    }
    if (found.size > 8) break;
  }
  return found;
}
