/** `run`: the rules against a deployment, and the reports of it. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { html } from "../report/html/html.ts";
import { junit } from "../report/junit.ts";
import type { Finding } from "../report/make.ts";
import { markdown } from "../report/markdown.ts";
import { sarif } from "../report/sarif.ts";
import type { Report } from "../report/schema.ts";
import { terminal } from "../report/terminal.ts";
import { catalogue } from "../rules/catalogue.ts";
import { runKit } from "../run/engine.ts";
import { masking } from "../target/mask.ts";
import type { Profile } from "../target/profile.ts";
import { type RunFlags, runOptions } from "./run-flags.ts";
import { beginJournal } from "./run-journal.ts";
import { profileOf } from "./target-options.ts";

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
  const journal = beginJournal(profile, options, process.env);
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
