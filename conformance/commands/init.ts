/** `init`: probes a deployment and writes a profile, with the evidence for each point that it inferred. */
import { existsSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import type { Command } from "commander";
import { stringify } from "smol-toml";
import { withoutCredentials } from "../report/command-line.ts";
import type { Report } from "../report/schema.ts";
import { runKit } from "../run/engine.ts";
import { defaultOptions } from "../target/options.ts";
import { type Profile, ProfileFault, readProfileFile } from "../target/profile.ts";
import type { ProfileFile } from "../target/profile-file.ts";
import { print } from "./print.ts";
import { programName } from "./program-name.ts";
import { checkFolder } from "./report-files.ts";
import { beginJournal } from "./run-journal.ts";
import { addTargetOptions, profileOf, readTextFile, type TargetFlags } from "./target-options.ts";

/** Rules whose probes find out everything that a profile can say. */
const FINDING_OUT = ["ETG-01", "IFM-01", "IFM-30", "IFM-40"];

type InitFlags = TargetFlags & { write?: string; force?: boolean };

export function addInitCommand(program: Command, end: (exitCode: number) => void): void {
  addTargetOptions(program.command("init <url>"))
    .description("probe a deployment and write a profile with the evidence for each point")
    .option("--write <file>", "the profile", "conformance.toml")
    .option("--force", "write over an existing file")
    .action(async (url: string, flags: InitFlags) => end(await init(url, flags)));
}

async function init(url: string, flags: InitFlags): Promise<number> {
  const path = flags.write ?? "conformance.toml";
  if (existsSync(path) && !flags.force)
    throw new ProfileFault([`${path} exists. Give --force to replace it.`]);
  const profile = profileOf({ ...flags, baseUrl: url }, process.env);
  const given = flags.profile === undefined ? {} : readProfileFile(readTextFile(flags.profile));
  checkFolder(dirname(path));
  const words = withoutCredentials(process.argv.slice(3));
  const journal = beginJournal(profile, { mode: "quick", arguments: words }, process.env);
  const report = await runKit(profile, { ...defaultOptions, mode: "quick", only: FINDING_OUT, journal });
  const { found } = report;
  if (found.names === null) {
    console.error(`${path} was not written. ${report.headline}`);
    // Whatever the rules say of it: nothing was read that a profile could hold.
    return report.exitCode === 0 ? 3 : report.exitCode;
  }
  writeFileSync(path, profileText(profileFile(given, profile, found), report));
  for (const { point, value } of report.inferred) print(`${point}: ${value}`);
  const program = programName(process.argv, process.env, process.cwd());
  print(`Wrote ${path}. Next: ${program} run --profile ${path}`);
  if (report.fixtures.left.length === 0) return 0;
  console.error(report.headline);
  return 6;
}

type Found = NonNullable<Report["found"]>;

/** What was given, by file or by flag, completed by what was found. */
function profileFile(given: ProfileFile, profile: Profile, found: Found): Record<string, unknown> {
  const { limited, otherTenant, metrics, tls } = profile;
  return withoutEmpty({
    ...given,
    "base-url": profile.baseUrl,
    "timeout-ms": profile.timeoutMs,
    headers: table(profile.main, given.headers),
    limited: limited && { denied: limited.denied, headers: table(limited.headers, given.limited?.headers) },
    "other-tenant": otherTenant && { headers: table(otherTenant, given["other-tenant"]?.headers) },
    customers: {
      ...given.customers,
      ids: profile.ids,
      headers: table(profile.create.headers, given.customers?.headers),
    },
    json: { ...found.names, ...given.json },
    patch: {
      ...given.patch,
      offered: found.patch === "absent" ? false : given.patch?.offered,
      "media-type": given.patch?.["media-type"] ?? found.patchMediaType ?? undefined,
    },
    delete: { ...given.delete, offered: found.delete === "absent" ? false : given.delete?.offered },
    metrics: {
      ...given.metrics,
      urls: metrics.urls,
      headers: table(metrics.headers, given.metrics?.headers),
    },
    tls: { ...given.tls, insecure: tls.insecure || undefined },
  });
}

/** Headers as they may be written: a secret that a flag spelled out becomes a variable. */
function table(headers: Profile["main"], given: ProfileFile["headers"] = {}): NonNullable<typeof given> {
  return Object.fromEntries(
    headers.map(({ name, shown }) => {
      const own = given[name];
      return [name, typeof own === "object" ? own : shown];
    }),
  );
}

/** TOML has no word for undefined; an empty table or list says nothing. */
function withoutEmpty(value: object): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(value)
      .map(([key, each]): [string, unknown] => [
        key,
        typeof each === "object" && each !== null && !Array.isArray(each) ? withoutEmpty(each) : each,
      ])
      .filter(([, each]) => each !== undefined && !isEmpty(each)),
  );
}

function isEmpty(value: unknown): boolean {
  return typeof value === "object" && value !== null && Object.keys(value).length === 0;
}

function profileText(file: Record<string, unknown>, report: Report): string {
  const evidence = report.inferred.map(({ point, value, evidence: seen }) =>
    `# ${point}: ${value} (${seen})`.replace(/[\r\n]+/g, " "),
  );
  const missing = [
    ["limited", "[limited.headers]: a caller who may not read some field"],
    ["other-tenant", "[other-tenant.headers]: a caller of another tenant"],
    ["metrics", '[metrics] urls = ["https://…/metrics"]; or none = true'],
  ].flatMap(([key, hint]) => (file[key ?? ""] === undefined ? [`# ${hint}`] : []));
  return `${[
    "# A profile of one deployment for the conformance kit. What was inferred stands here with its evidence.",
    ...evidence,
    ...(missing.length === 0 ? [] : ["#", "# Some rules can't run without:", ...missing]),
    "",
    stringify(file).trimEnd(),
  ].join("\n")}\n`;
}
