/** stderr: messages for people, or for programs with `--output json`. Secrets are masked here, for all of it. */

import { historyJson } from "../client/customer-history.ts";
import { formatJson, type Json, JsonNumber } from "../client/json.ts";
import type { Failure } from "../outcome/failure.ts";
import type { Output } from "./standard-output.ts";
import { escapedInJson, visibleControls } from "./visible-controls.ts";

/**
 * With `--output json` the reason of a bad ending is all that stands on stderr, so notes and warnings wait for the
 * ending: a bad one has them among its details, and after a good one they follow as lines.
 */
export type Messages = {
  /**
   * The summary of a write, a note: for a person at a terminal, or with `--verbose`. A job of cron that went well prints
   * nothing, so that nobody gets mail.
   */
  note(line: string): void;
  /** Notes that were not printed: where the output is lost, they alone say what was written. */
  unprinted(): readonly string[];
  /** A line that always appears. */
  warn(line: string): void;
  /** How far it is, and what only a person can use: like a note, but never with JSON and never kept. */
  aside(line: string): void;
  /**
   * A warning that comes before the command runs. For programs it waits: the reason of a bad ending has it as a
   * member, so that stderr is one object of JSON, and at a good end it is one by itself.
   */
  caution(line: string): void;
  /** One line of the exchange; only with `--verbose`. */
  verbose(line: string): void;
  /** The reason of a bad ending: text, or one JSON object with `--output json`. */
  fail(failure: Failure, exitCode: number): void;
  /** Raw text such as a progress bar: nothing is added, and `--quiet` removes it. */
  draw(text: string): void;
  /** Masks these from now on. */
  hide(secrets: readonly string[]): void;
  flush(): Promise<void>;
};

type MessageStyle = {
  quiet: boolean;
  verbose: boolean;
  json: boolean;
  /** CUSTOMERS_NOTES is set: notes without a terminal too. */
  notes: boolean;
};

/** Notes that are kept. */
const UNPRINTED_MAX = 100;

function wantsNotes(stream: Output, { quiet, verbose, notes }: MessageStyle): boolean {
  return !quiet && (verbose || notes || stream.isTTY === true);
}

export function openMessages(stream: Output, style: () => MessageStyle): Messages {
  let written: Promise<void> = Promise.resolve();
  const secrets: string[] = [];
  const cautions: string[] = [];
  const waiting: string[] = [];
  const unprinted: string[] = [];
  stream.on("error", () => {}); // stderr was closed: there is nobody left to tell
  const put = (text: string) => {
    const masked = maskSecrets(text, secrets);
    written = Promise.all([
      written,
      new Promise<void>((resolve) => stream.write(masked, () => resolve())),
    ]).then(() => {});
  };
  const line = (text: string) => put(`${visibleControls(text)}\n`);
  const say = (text: string) => {
    if (style().json) waiting.push(text);
    else line(text);
  };
  return {
    note: (text) => {
      if (wantsNotes(stream, style())) say(text);
      else if (unprinted.length < UNPRINTED_MAX) unprinted.push(text);
    },
    unprinted: () => unprinted,
    warn: say,
    aside: (text) => {
      if (wantsNotes(stream, style()) && !style().json) line(text);
    },
    caution: (text) => {
      if (style().json) cautions.push(text);
      else line(text);
    },
    verbose: (text) => {
      if (style().verbose) line(text);
    },
    draw: (text) => {
      if (!style().quiet) put(text);
    },
    fail: (failure, exitCode) =>
      put(
        style().json
          ? escapedInJson(failureJson(withDetails(failure, waiting.splice(0)), exitCode, cautions.splice(0)))
          : visibleControls(failureText(failure)),
      ),
    hide: (more) => void secrets.push(...more.flatMap(spellings)),
    flush: () => {
      for (const text of waiting.splice(0)) line(text);
      const warnings = cautions.splice(0);
      if (warnings.length > 0) put(escapedInJson(`${formatJson(new Map([["warnings", warnings]]))}\n`));
      return written;
    },
  };
}

/** As it is, as JSON writes it, and as a URL does. */
function spellings(secret: string): string[] {
  return [...new Set([secret, JSON.stringify(secret).slice(1, -1), encodeURIComponent(secret)])];
}

/** Shorter secrets are not looked for in running text: masking each "a" would destroy it. */
const SECRET_LENGTH_MIN = 4;

export function maskSecrets(text: string, secrets: readonly string[]): string {
  return secrets
    .filter((secret) => secret.length >= SECRET_LENGTH_MIN)
    .reduce((masked, secret) => masked.replaceAll(secret, "***"), text);
}

function failureText(failure: Failure): string {
  // Names of members are the server's too: none of these lines may become two.
  const lines = [`customers: ${failure.message}`, ...(failure.details ?? [])].map((line) =>
    line.replaceAll(/[\r\n]+/g, " "),
  );
  if (failure.hint !== undefined) lines.push(failure.hint);
  if (failure.requestId !== undefined) lines.push(`request id: ${failure.requestId}`);
  return `${lines.join("\n")}\n`;
}

function withDetails(failure: Failure, lines: readonly string[]): Failure {
  return { ...failure, details: [...(failure.details ?? []), ...lines] };
}

function failureJson(failure: Failure, exitCode: number, warnings: readonly string[]): string {
  const members: [string, Json][] = [
    ["code", failure.code],
    ["message", failure.message],
    ["hint", failure.hint ?? null],
    ["requestId", failure.requestId ?? null],
    ["exitCode", new JsonNumber(String(exitCode))],
    ["details", failure.details ?? []],
    ["problem", failure.problem ?? null],
  ];
  if (failure.changes !== undefined) {
    const { changes, moreChanges } = failure.changes;
    members.push(["changes", changes.map(historyJson)], ["moreChanges", moreChanges]);
  }
  if (warnings.length > 0) members.push(["warnings", warnings]);
  return `${formatJson(new Map(members))}\n`;
}
