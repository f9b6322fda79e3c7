/** One line of the matrix: a service, and the kit run against it. */

import type { Report, RuleResult } from "../report/schema.ts";
import { runKit } from "../run/engine.ts";
import { defaultOptions, type RunOptions } from "../target/options.ts";
import { type ProfileFlags, readProfile } from "../target/profile.ts";
import { blowing, type Weather } from "./environments.ts";
import { evidenceFaults } from "./evidence.ts";
import type { Fault } from "./fault.ts";
import { CREDENTIALS, type Faulty } from "./service/service.ts";
import { type Deployment, PLAIN } from "./service/sound-options.ts";
import { type SoundServer, startSoundServer } from "./service/sound-server.ts";
import type { Target } from "./targets.ts";
import type { Variant } from "./variants.ts";

export type Verdict = {
  kind: "fault" | "variant" | "target" | "weather";
  id: string;
  /** What is wrong with the kit, or with the line; empty where both are right. */
  complaints: string[];
  /** Ids of assertions that were looked at, and of those that fired. */
  looked: string[];
  fired: string[];
  /** Rules by outcome, passes left out. */
  outcomes: Record<string, string>;
  exitCode: number;
  requests: number;
  durationMs: number;
};

/**
 * Short races: the faults' gaps are wide. A pace, far above what is sent, keeps the rules one after the other on a
 * loaded machine too: what each fault does is told rule by rule.
 */
const OPTIONS: RunOptions = {
  ...defaultOptions,
  rounds: 4,
  connections: 6,
  exclusive: true,
  rate: 1_000_000,
  arguments: ["--exclusive"],
};

/** The sound service counts at once. */
const PROMPT_COUNTERS = "[metrics]\nlag-ms = 250\n";
const TARGET_MS_MAX = 60_000;

export function profileFlags(
  server: SoundServer,
  deployment: Deployment,
  variant?: Variant,
  deniedUnnamed = false,
): ProfileFlags {
  const without = variant?.without ?? [];
  const header = (caller: keyof typeof CREDENTIALS) => [
    `${deployment.credential.header}: ${deployment.credential.scheme}${CREDENTIALS[caller]}`,
  ];
  return {
    baseUrl: server.url,
    profileText: `${variant?.profile ?? ""}\n${PROMPT_COUNTERS}`,
    header: header("main"),
    ...(without.includes("limited") ? {} : { limitedHeader: header("limited") }),
    ...(without.includes("limited") || deniedUnnamed ? {} : { limitedDenied: "email" }),
    ...(without.includes("other") ? {} : { otherTenantHeader: header("other") }),
    ...(variant?.given === true ? { customerId: server.seeded } : {}),
    ...(without.includes("metrics")
      ? {}
      : { metricsUrl: server.metricsUrls, metricsHeader: header("metrics") }),
    timeout: 3000,
  };
}

function verdictOf(kind: Verdict["kind"], id: string, report: Report): Verdict {
  const ids = (which: "looked" | "fired", rules: readonly RuleResult[]) =>
    rules.flatMap(({ assertions }) => assertions.filter((each) => each[which] > 0).map(({ id }) => id));
  return {
    kind,
    id,
    complaints: [
      ...report.rules
        .filter((rule) => rule.outcome === "kit-error")
        .map((rule) => `${rule.id} kit-error: ${rule.reason}`),
      ...evidenceFaults(report),
    ],
    looked: ids("looked", report.rules),
    // What a rule found and was not believed is no catch.
    fired: ids("fired", report.rules.filter(failing)),
    outcomes: Object.fromEntries(
      report.rules.filter((rule) => rule.outcome !== "pass").map((rule) => [rule.id, rule.outcome]),
    ),
    exitCode: report.exitCode,
    requests: report.requests,
    durationMs: report.durationMs,
  };
}

const failing = (rule: RuleResult): boolean => rule.outcome === "violation" || rule.outcome === "warning";

const said = ({ reason, assertions }: RuleResult): string =>
  [reason, ...assertions.filter(({ fired }) => fired > 0).map(({ detail }) => detail ?? "")].join("\n");

async function against(
  deployment: Deployment,
  faulty: Faulty | undefined,
  variant: Variant | undefined,
  options: Partial<RunOptions>,
  deniedUnnamed = false,
): Promise<Report> {
  const server = await startSoundServer(deployment, faulty);
  try {
    const profile = readProfile(profileFlags(server, deployment, variant, deniedUnnamed), {});
    return await runKit(profile, { ...OPTIONS, ...options });
  } finally {
    await server.close();
  }
}

/** What the faults trip is compared with golden.json by the caller. */
export async function runFault(fault: Fault, only: readonly string[] = []): Promise<Verdict> {
  let ran = 0;
  const faulty = fault.plant(() => (ran += 1));
  const deployment = { ...PLAIN, ...fault.deployment };
  const options = { only, mode: fault.mode ?? "quick" } as const;
  const report = await against(deployment, faulty, undefined, options, fault.deniedUnnamed);
  const verdict = verdictOf("fault", fault.id, report);
  if (ran === 0) verdict.complaints.push("void: the faulty code never ran");
  return verdict;
}

export async function runVariant(
  variant: Variant,
  only: readonly string[] = [],
  mode: RunOptions["mode"] = "full",
): Promise<Verdict> {
  const deployment = { ...PLAIN, ...variant.deployment };
  // A slow deployment is tested in lanes, which a pace would prevent.
  const rate = deployment.latencyMs > 0 ? undefined : OPTIONS.rate;
  const report = await against(deployment, undefined, variant, {
    only,
    mode,
    rate,
    exclusive: !deployment.busyMetrics,
  });
  const verdict = verdictOf("variant", variant.id, report);
  for (const rule of report.rules.filter(failing)) {
    if (rule.outcome === "warning" && variant.warns?.includes(rule.id)) continue;
    verdict.complaints.push(`false ${rule.outcome}: ${rule.id}: ${said(rule)}`);
  }
  const unrun = report.rules.filter(
    ({ id, outcome }) =>
      (outcome === "could-not-run" || outcome === "inconclusive") && variant.undecided?.includes(id) !== true,
  );
  if (unrun.length > 0 && variant.given !== true && variant.without === undefined)
    verdict.complaints.push(`not run: ${unrun.map(({ id }) => id).join(" ")}: ${unrun[0]?.reason}`);
  if (report.fixtures.left.length > 0)
    verdict.complaints.push(`left behind: ${JSON.stringify(report.fixtures.left)}`);
  return verdict;
}

/** The sound service behind an environment that fails: it may be left undecided, and never accused. */
export async function runWeather(
  weather: Weather,
  seed: number,
  only: readonly string[] = [],
): Promise<Verdict> {
  const report = await against(PLAIN, blowing(weather, seed), undefined, { only, mode: "quick" });
  const verdict = verdictOf("weather", `${weather.id} seed ${seed}`, report);
  for (const rule of report.rules.filter(failing))
    verdict.complaints.push(`false ${rule.outcome}: ${rule.id}: ${said(rule)}`);
  return verdict;
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
    const report = await runKit(readProfile(flags, {}), { ...OPTIONS, only, mode: "quick", budget: 2000 });
    const verdict = verdictOf("target", target.id, report);
    const passed = report.rules.filter((rule) => rule.outcome === "pass").map((rule) => rule.id);
    if (passed.length > 0 && target.likeACustomer !== true)
      verdict.complaints.push(`passed: ${passed.join(", ")}`);
    if (report.exitCode === 0 || report.verdict === "conforms")
      verdict.complaints.push(`taken for sound: exit ${report.exitCode}`);
    if (target.exit !== undefined && report.exitCode !== target.exit)
      verdict.complaints.push(`exit ${report.exitCode}, not ${target.exit}: ${report.headline}`);
    if (target.says?.test(report.headline) === false)
      verdict.complaints.push(`does not say ${target.says}: ${report.headline}`);
    if (report.durationMs > TARGET_MS_MAX) verdict.complaints.push(`took ${report.durationMs} ms`);
    return verdict;
  } finally {
    await listening.close();
  }
}
