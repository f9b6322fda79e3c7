/** How far a bulk command is: a bar on a terminal, a line every ten seconds elsewhere. */

import { amount, count } from "../outcome/amount.ts";
import type { Messages } from "./messages.ts";
import type { Terminal } from "./terminal.ts";

export type Progress = {
  /** Rows with an outcome, those of an earlier run included. */
  done: number;
  /** Those of an earlier run: they don't count for the rate. */
  before: number;
  /** Undefined where nobody knows, as in an export. */
  total: number | undefined;
  conflicts: number;
  failed: number;
};

const BAR_INTERVAL_MS = 100;
const LINE_INTERVAL_MS = 10_000;
const BAR_WIDTH_MAX = 30;
const CLEAR_LINE = "\r\u001b[2K";

/** Shows `state()` until `stop` is called; the bar is then removed. */
export function showProgress(
  { messages, terminal }: { messages: Messages; terminal: Terminal },
  noun: string,
  state: () => Progress,
): { say(line: string): void; stop(): void } {
  const start = performance.now();
  const elapsedMs = () => performance.now() - start;
  const bar = terminal.stderrIsTerminal;
  const show = () => {
    if (bar) messages.draw(`${CLEAR_LINE}${progressBar(state(), elapsedMs(), terminal.stderrColumns)}`);
    else messages.aside(progressLine(noun, state(), elapsedMs()));
  };
  const timer = setInterval(show, bar ? BAR_INTERVAL_MS : LINE_INTERVAL_MS);
  if (bar) show();
  return {
    /** A line of its own, above the bar. */
    say(line) {
      if (bar) messages.draw(CLEAR_LINE);
      messages.warn(line);
      if (bar) show();
    },
    stop() {
      clearInterval(timer);
      if (bar) messages.draw(CLEAR_LINE);
    },
  };
}

/** At most `columns` - 1 wide, so that no terminal wraps it. */
export function progressBar(progress: Progress, elapsedMs: number, columns: number): string {
  const { done, total } = progress;
  const far = total === undefined ? count(done) : `${count(done)} of ${count(total)}`;
  const text = [far, ...facts(progress, elapsedMs)].join(" · ");
  const width = Math.min(BAR_WIDTH_MAX, columns - text.length - 4);
  if (total === undefined || width < 5) return text.slice(0, columns - 1);
  const filled = total === 0 ? width : Math.floor((width * done) / total);
  return `[${"#".repeat(filled)}${"-".repeat(width - filled)}] ${text}`;
}

export function progressLine(noun: string, progress: Progress, elapsedMs: number): string {
  const { done, total } = progress;
  const far = total === undefined ? `${count(done)} ${noun}` : `${count(done)} of ${count(total)} ${noun}`;
  return [far, ...facts(progress, elapsedMs)].join(", ");
}

function facts(progress: Progress, elapsedMs: number): string[] {
  const { conflicts, failed } = progress;
  return [
    `${count(ratePerS(progress, elapsedMs))}/s`,
    remaining(progress, elapsedMs),
    conflicts > 0 ? amount(conflicts, "conflict") : "",
    failed > 0 ? `${count(failed)} failed` : "",
  ].filter((fact) => fact !== "");
}

function ratePerS({ done, before }: Progress, elapsedMs: number): number {
  return elapsedMs <= 0 ? 0 : Math.round(((done - before) * 1000) / elapsedMs);
}

function remaining(progress: Progress, elapsedMs: number): string {
  const { done, before, total } = progress;
  if (total === undefined || done === before || done >= total) return "";
  const seconds = Math.ceil(((total - done) * elapsedMs) / (done - before) / 1000);
  if (seconds < 60) return `${seconds} s left`;
  const minutes = Math.ceil(seconds / 60);
  return minutes < 60 ? `${minutes} min left` : `${Math.floor(minutes / 60)} h ${minutes % 60} min left`;
}
