/** `run`: the rules against a deployment, and the reports of it. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { runKit } from "../engine.ts";
import { readExpected } from "../expected.ts";
import { Journal, journalFolder } from "../journal.ts";
import { masking } from "../mask.ts";
import { defaultOptions, QUICK_ROUNDS, type RunOptions } from "../options.ts";
import type { Profile } from "../profile.ts";
import { ProfileFault } from "../profile.ts";
import type { Report } from "../report.ts";
import { FAMILIES } from "../report.ts";
import type { Finding } from "../report-maker.ts";
import { html } from "../reports/html.ts";
import { junit } from "../reports/junit.ts";
import { markdown } from "../reports/markdown.ts";
import { sarif } from "../reports/sarif.ts";
import { terminal } from "../reports/terminal.ts";
import { catalogue } from "../rules/catalogue.ts";
import { trustSentences } from "../trust.ts";
import { profileOf, readTextFile, type TargetFlags } from "./target-options.ts";

export type RunFlags = TargetFlags & {
  only?: string;
  skip?: string;
  allowIncomplete?: boolean;
  exclusive?: boolean;
  out?: string;
  quick?: boolean;
  readOnly?: boolean;
  rounds?: number;
  connections?: number;
  rate?: number;
  budget?: number;
  seed?: number;
  expected?: string;
};

export const DEFAULT_OUT = "conformance-report";
export const REPORT_FILE = "report.json";

/** @returns the exit code. @throws ProfileFault on wrong usage. */
export async function run(
  flags: RunFlags,
  words: readonly string[],
  observe?: (finding: Finding) => void,
): Promise<{ report: Report; exitCode: number }> {
  const profile = profileOf(flags, process.env);
  const options = runOptions(flags, profile, words);
  const abort = new AbortController();
  const interrupt = () => {
    // A second signal does not wait for the clean-up.
    if (abort.signal.aborted) process.exit(130);
    process.stderr.write("\ninterrupted: cleaning up; once more to leave at once\n");
    abort.abort();
  };
  process.on("SIGINT", interrupt);
  process.on("SIGTERM", interrupt);
  const journal =
    options.mode === "read-only"
      ? undefined
      : Journal.begin(journalFolder(process.env), {
          pid: process.pid,
          baseUrl: profile.baseUrl,
          startedAt: new Date().toISOString(),
          arguments: options.arguments.map(masking(profile.secrets)),
        });
  const progress = process.stderr.isTTY ? progressLine() : undefined;
  try {
    const report = await runKit(
      profile,
      { ...options, signal: abort.signal, journal },
      {
        rule(finding) {
          progress?.(finding);
          observe?.(finding);
        },
      },
    );
    progress?.(undefined);
    return { report, exitCode: report.exitCode };
  } finally {
    process.off("SIGINT", interrupt);
    process.off("SIGTERM", interrupt);
  }
}

function runOptions(flags: RunFlags, profile: Profile, words: readonly string[]): RunOptions {
  if (flags.quick && flags.readOnly) throw new ProfileFault(["--quick and --read-only exclude each other"]);
  const mode = flags.readOnly ? "read-only" : flags.quick ? "quick" : "full";
  return {
    ...defaultOptions,
    mode,
    only: ids("--only", flags.only),
    skip: ids("--skip", flags.skip),
    rounds: flags.rounds ?? (mode === "quick" ? QUICK_ROUNDS : defaultOptions.rounds),
    connections: flags.connections ?? defaultOptions.connections,
    exclusive: flags.exclusive ?? false,
    allowIncomplete: flags.allowIncomplete ?? false,
    rate: flags.rate,
    budget: flags.budget ?? profile.budget ?? defaultOptions.budget,
    seed: flags.seed ?? defaultOptions.seed,
    arguments: words,
    command: ["conformance run", ...words.map(shellWord)].join(" "),
    expected: flags.expected === undefined ? [] : readExpected(readTextFile(flags.expected)),
    trust: trustSentences(),
  };
}

function ids(flag: string, text: string | undefined): string[] {
  const names = (text ?? "")
    .split(",")
    .map((name) => name.trim().toUpperCase())
    .filter((name) => name !== "");
  const known = new Set<string>([...catalogue.map(({ id }) => id), ...FAMILIES]);
  const unknown = names.filter((name) => !known.has(name));
  if (unknown.length > 0)
    throw new ProfileFault(
      unknown.map((name) => `${flag}: there is no rule or family ${name}; see \`conformance rules\``),
    );
  return names;
}

/** Quoted so that the shell expands `$NAME` of a masked secret and nothing else. */
function shellWord(word: string): string {
  if (/^[\w@%+=:,./-]+$/.test(word)) return word;
  return /\$[A-Z]/.test(word) ? `"${word.replace(/["\\`]/g, "\\$&")}"` : `'${word.replaceAll("'", `'\\''`)}'`;
}

function progressLine(): (finding: Finding | undefined) => void {
  let done = 0;
  return (finding) => {
    done += 1;
    process.stderr.write(
      finding === undefined
        ? "\r\x1b[K"
        : `\r\x1b[K${done}/${catalogue.length} ${finding.rule.id} ${finding.outcome}`,
    );
  };
}

const FILES = {
  [REPORT_FILE]: (report: Report) => `${JSON.stringify(report, null, 2)}\n`,
  "junit.xml": junit,
  "report.html": html,
  "report.md": markdown,
  "report.sarif": sarif,
} as const satisfies Record<string, (report: Report) => string>;

/** Too short a secret turns up by chance. */
const CANARY_CHARACTERS_MIN = 8;

/**
 * Writes all report files.
 * @returns the names of files in which a secret stood; they are written without it, and the run is a kit fault.
 */
export function writeReports(report: Report, folder: string, secrets: Profile["secrets"]): string[] {
  mkdirSync(folder, { recursive: true });
  const canaries = secrets.filter(({ value }) => value.length >= CANARY_CHARACTERS_MIN);
  const mask = masking(canaries);
  const leaks: string[] = [];
  for (const [name, draw] of Object.entries(FILES)) {
    const text = draw(report);
    const safe = mask(text);
    if (safe !== text) leaks.push(name);
    writeFileSync(join(folder, name), safe);
  }
  return leaks;
}

export function printReport(report: Report): void {
  const color = process.stdout.isTTY === true && process.env["NO_COLOR"] === undefined;
  process.stdout.write(
    `${terminal(report, { color, width: Math.min(process.stdout.columns || 110, 140) })}\n`,
  );
}
