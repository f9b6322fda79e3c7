/** `init`: probes a deployment and writes a profile, with the evidence for each point that it inferred. */
import { existsSync, writeFileSync } from "node:fs";
import type { Report } from "../report/schema.ts";
import { runKit } from "../run/engine.ts";
import { Journal, journalFolder } from "../run/journal.ts";
import { defaultOptions } from "../run/options.ts";
import { type Profile, ProfileFault } from "../target/profile.ts";
import { profileOf, type TargetFlags } from "./target-options.ts";

/** Rules that make the kit find out everything that a profile can say. */
const FINDING_OUT = ["ETG-01", "IFM-01", "IFM-30", "IFM-40"];

export async function init(
  url: string,
  flags: TargetFlags & { write?: string; force?: boolean },
): Promise<number> {
  const path = flags.write ?? "conformance.toml";
  if (existsSync(path) && !flags.force) throw new ProfileFault([`${path} exists; --force writes over it`]);
  const profile = profileOf({ ...flags, baseUrl: url }, process.env);
  const journal = Journal.begin(journalFolder(process.env), {
    pid: process.pid,
    baseUrl: profile.baseUrl,
    startedAt: new Date().toISOString(),
    arguments: ["--base-url", profile.baseUrl],
  });
  const report = await runKit(profile, { ...defaultOptions, mode: "quick", only: FINDING_OUT, journal });
  writeFileSync(path, profileText(profile, report));
  console.log(`${path} written; ${report.headline}`);
  return report.verdict === "unreachable" ||
    report.verdict === "kit-fault" ||
    report.verdict === "fixtures-left"
    ? report.exitCode
    : 0;
}

function profileText(profile: Profile, report: Report): string {
  const text = (value: string) => JSON.stringify(value);
  const headers = (name: string, list: Profile["main"]) =>
    list.length === 0
      ? []
      : ["", `[${name}]`, ...list.map((header) => `${text(header.name)} = ${text(header.shown)}`)];
  const names = report.inferred.find(({ point }) => point === "JSON names");
  const [id, name, email, status] = names?.value.split(", ") ?? [];
  const patch = report.inferred.find(({ point }) => point === "PATCH");
  const mediaType = patch?.value.split(",")[0];
  const removal = report.inferred.find(({ point }) => point === "DELETE");
  const lines = [
    "# A profile of one deployment for the conformance kit. What was inferred stands with its evidence.",
    ...report.inferred.map(({ point, value, evidence }) =>
      `# ${point}: ${value} (${evidence})`.replace(/[\r\n]+/g, " "),
    ),
    "",
    `base-url = ${text(profile.baseUrl)}`,
    ...headers("headers", profile.main),
    ...headers("limited.headers", profile.limited?.headers ?? []),
    ...headers("other-tenant.headers", profile.otherTenant ?? []),
    ...(profile.ids.length === 0 ? [] : ["", "[customers]", `ids = [${profile.ids.map(text).join(", ")}]`]),
    ...(names === undefined || status === undefined
      ? []
      : [
          "",
          "[json]",
          `id = ${text(id ?? "id")}`,
          `name = ${text(name ?? "name")}`,
          `email = ${text(email ?? "email")}`,
          `status = ${text(status)}`,
        ]),
    ...(mediaType?.includes("/")
      ? ["", "[patch]", `media-type = ${text(mediaType)}`]
      : patch === undefined
        ? []
        : ["", "[patch]", `# ${patch.value}`, "offered = false"]),
    ...(removal === undefined || removal.value.startsWith("answers")
      ? []
      : ["", "[delete]", `# ${removal.value}`, "offered = false"]),
    ...(profile.metrics.urls.length === 0
      ? ["", "# [metrics]", '# urls = ["https://…/metrics"]   # or: none = true']
      : ["", "[metrics]", `urls = [${profile.metrics.urls.map(text).join(", ")}]`]),
    ...headers("metrics.headers", profile.metrics.headers),
  ];
  return `${lines.join("\n")}\n`;
}
