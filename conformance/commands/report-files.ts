/** The files of a report: checked before a run, written after it. */
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { html } from "../report/renderers/html/html.ts";
import { junit } from "../report/renderers/junit.ts";
import { markdown } from "../report/renderers/markdown.ts";
import { sarif } from "../report/renderers/sarif.ts";
import type { Report } from "../report/schema.ts";
import { masking } from "../target/mask.ts";
import { messageOf } from "../target/message.ts";
import { type Profile, ProfileFault } from "../target/profile.ts";

export const REPORT_FILE = "report.json";

const FILES = {
  [REPORT_FILE]: (report: Report) => `${JSON.stringify(report, null, 2)}\n`,
  "junit.xml": junit,
  "report.html": html,
  "report.md": markdown,
  "report.sarif": sarif,
} as const satisfies Record<string, (report: Report) => string>;

export const REPORT_FILES = Object.keys(FILES);

/** Too short a secret turns up by chance. */
const CANARY_CHARACTERS_MIN = 8;

/** @throws ProfileFault where the folder can't be made or written. A run of minutes must not end with lost reports. */
export function checkFolder(folder: string): void {
  const probe = join(folder, `.writable-${process.pid}`);
  try {
    mkdirSync(folder, { recursive: true });
    writeFileSync(probe, "");
    rmSync(probe);
  } catch (error) {
    throw new ProfileFault([`--out: reports can't be written to ${folder}: ${messageOf(error)}`]);
  }
}

/**
 * Writes all report files.
 * @returns the names of files in which a secret stood; they are written without it, and the run is a kit fault.
 */
export function writeReports(report: Report, folder: string, secrets: Profile["secrets"]): string[] {
  mkdirSync(folder, { recursive: true });
  const { mask } = masking(secrets.filter(({ value }) => value.length >= CANARY_CHARACTERS_MIN));
  const leaks: string[] = [];
  for (const [name, draw] of Object.entries(FILES)) {
    const text = draw(report);
    const safe = mask(text);
    if (safe !== text) leaks.push(name);
    writeFileSync(join(folder, name), safe);
  }
  return leaks;
}
