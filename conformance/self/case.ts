/** One line of the matrix: a server, the kit run against it, and what the kit should have found. */

import type { Report, RuleResult } from "../report/schema.ts";
import { runKit } from "../run/engine.ts";
import { defaultOptions, type RunOptions } from "../target/options.ts";
import { type ProfileFlags, readProfile } from "../target/profile.ts";
import type { Fault } from "./fault.ts";
import { CREDENTIALS } from "./service/service.ts";
import { type Deployment, PLAIN } from "./service/sound-options.ts";
import { type SoundServer, startSoundServer } from "./service/sound-server.ts";
import type { Target } from "./targets.ts";
import type { Variant } from "./variants.ts";

export type Verdict = {
  kind: "fault" | "variant" | "target";
  id: string;
  does: string;
  /** What is wrong with the kit (or with the fault); empty where the line is right. */
  complaints: string[];
  /** Ids of assertions that were looked at, and of those that fired. */
  looked: string[];
  fired: string[];
  /** Rules by outcome, passes left out. */
  outcomes: Record<string, string>;
  exitCode: number;
  /** How often the faulty code did what the sound one would not have done. */
  ran: number;
  durationMs: number;
};

/**
 * Short races: the faults' gaps are wide, and the whole matrix has three minutes. A pace, far above what is
 * sent, keeps the rules one after the other on a loaded machine too: what each fault does is told rule by rule.
 */
const OPTIONS: RunOptions = {
  ...defaultOptions,
  rounds: 4,
  connections: 6,
  exclusive: true,
  rate: 1_000_000,
  command: "bun run conformance run --exclusive",
};

export function profileFlags(server: SoundServer, deployment: Deployment, variant?: Variant): ProfileFlags {
  const without = variant?.without ?? [];
  const header = (caller: keyof typeof CREDENTIALS) => [
    `${deployment.credential.header}: ${deployment.credential.scheme}${CREDENTIALS[caller]}`,
  ];
  return {
    baseUrl: server.url,
    // A fault that loses counts is found without a long wait for late ones.
    profileText: variant === undefined ? "[metrics]\nlag-ms = 200\n" : variant.profile,
    header: header("main"),
    ...(without.includes("limited") ? {} : { limitedHeader: header("limited"), limitedDenied: "email" }),
    ...(without.includes("other") ? {} : { otherTenantHeader: header("other") }),
    ...(variant?.given === true ? { customerId: server.seeded } : {}),
    ...(without.includes("metrics")
      ? {}
      : { metricsUrl: server.metricsUrls, metricsHeader: header("metrics") }),
    timeout: 3000,
  };
}

function verdictOf(kind: Verdict["kind"], id: string, does: string, report: Report, ran: number): Verdict {
  const assertions = report.rules.flatMap((rule) => rule.assertions);
  const ids = (which: "looked" | "fired") =>
    assertions.filter((each) => each[which] > 0).map((each) => each.id);
  return {
    kind,
    id,
    does,
    complaints: report.rules
      .filter((rule) => rule.outcome === "kit-error")
      .map((rule) => `${rule.id} kit-error: ${rule.reason}`),
    looked: ids("looked"),
    fired: ids("fired"),
    outcomes: Object.fromEntries(
      report.rules.filter((rule) => rule.outcome !== "pass").map((rule) => [rule.id, rule.outcome]),
    ),
    exitCode: report.exitCode,
    ran,
    durationMs: report.durationMs,
  };
}

const failing = (rule: RuleResult): boolean => rule.outcome === "violation" || rule.outcome === "warning";

/** Everything that a finding says to QA in words. */
function wordsOf(rule: RuleResult): string {
  const evidence = rule.evidence.flatMap(({ probe, header, came }) => [probe, header ?? "", came]);
  const details = rule.assertions.filter((each) => each.fired > 0).map((each) => each.detail ?? "");
  const layer = rule.layer === null ? [] : [rule.layer.name];
  return [rule.reason, ...evidence, ...details, ...layer].join("\n");
}

export async function runFault(fault: Fault, only: readonly string[] = []): Promise<Verdict> {
  let ran = 0;
  const deployment = { ...PLAIN, ...fault.deployment };
  const server = await startSoundServer(
    deployment,
    fault.plant(() => (ran += 1)),
  );
  try {
    // Those that one assertion sees alone are seen by a short run as well.
    const mode = typeof fault.cause === "string" ? "quick" : "full";
    const report = await runKit(readProfile(profileFlags(server, deployment), {}), {
      ...OPTIONS,
      only,
      mode,
    });
    const verdict = verdictOf("fault", fault.id, fault.does, report, ran);
    const named = report.rules.find((rule) => rule.id === fault.rule);
    if (ran === 0) verdict.complaints.push("void: the faulty code never ran");
    if (named === undefined || !failing(named)) {
      verdict.complaints.push(
        `missed: ${fault.rule} is ${named?.outcome ?? "absent"} (${named?.reason ?? ""})`,
      );
    } else if (typeof fault.cause === "string") {
      const { fired } = verdict;
      if (!fired.includes(fault.cause)) verdict.complaints.push(`not ${fault.cause}: ${fired.join(" ")}`);
    } else if (!fault.cause.test(wordsOf(named))) {
      verdict.complaints.push(
        `cause not stated: ${fault.rule} does not say ${fault.cause}, but: ${wordsOf(named)}`,
      );
    }
    for (const { id, outcome } of report.rules)
      if (fault.hides?.includes(id) === true && outcome === "pass")
        verdict.complaints.push(`hidden: ${id} passed`);
    return verdict;
  } finally {
    await server.close();
  }
}

export async function runVariant(variant: Variant, only: readonly string[] = []): Promise<Verdict> {
  const deployment = { ...PLAIN, ...variant.deployment };
  const server = await startSoundServer(deployment);
  try {
    // A slow deployment is tested in lanes, which a pace would prevent.
    const rate = deployment.latencyMs > 0 ? undefined : OPTIONS.rate;
    const options = { ...OPTIONS, only, rate, exclusive: !deployment.busyMetrics };
    const report = await runKit(readProfile(profileFlags(server, deployment, variant), {}), options);
    const verdict = verdictOf("variant", variant.id, variant.does, report, 1);
    for (const rule of report.rules.filter(failing)) {
      if (rule.outcome === "warning" && variant.warns?.includes(rule.id)) continue;
      verdict.complaints.push(`false ${rule.outcome}: ${rule.id}: ${wordsOf(rule)}`);
    }
    const unrun = report.rules.filter(
      ({ id, outcome }) =>
        (outcome === "could-not-run" || outcome === "inconclusive") &&
        variant.undecided?.includes(id) !== true,
    );
    if (unrun.length > 0 && variant.given !== true && variant.without === undefined) {
      verdict.complaints.push(`not run: ${unrun.map(({ id }) => id).join(" ")}: ${unrun[0]?.reason}`);
    }
    if (report.fixtures.left.length > 0)
      verdict.complaints.push(`left behind: ${JSON.stringify(report.fixtures.left)}`);
    return verdict;
  } finally {
    await server.close();
  }
}

export async function runTarget(target: Target, only: readonly string[] = []): Promise<Verdict> {
  const listening = await target.start();
  try {
    const flags = {
      baseUrl: `http://127.0.0.1:${listening.port}`,
      header: ["Authorization: Bearer t"],
      ...(target.given === undefined ? {} : { customerId: [target.given] }),
      timeout: 400,
    };
    const report = await runKit(readProfile(flags, {}), { ...OPTIONS, only, budget: 2000 });
    const verdict = verdictOf("target", target.id, target.does, report, 1);
    const passed = report.rules.filter((rule) => rule.outcome === "pass").map((rule) => rule.id);
    if (passed.length > 0 && target.likeACustomer !== true)
      verdict.complaints.push(`passed: ${passed.join(", ")}`);
    if (report.exitCode === 0 || report.verdict === "conforms")
      verdict.complaints.push(`taken for sound: exit ${report.exitCode}`);
    if (target.exit !== undefined && report.exitCode !== target.exit)
      verdict.complaints.push(`exit ${report.exitCode}, not ${target.exit}: ${report.headline}`);
    if (target.says?.test(report.headline) === false)
      verdict.complaints.push(`does not say ${target.says}: ${report.headline}`);
    if (report.durationMs > 20_000) verdict.complaints.push(`took ${report.durationMs} ms`);
    return verdict;
  } finally {
    await listening.close();
  }
}
