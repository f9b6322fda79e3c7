/**
 * Standard output, without `process.stdout`: Bun would leave a pipe non-blocking, and the next program of a script that
 * writes to the same pipe fails where it is full.
 */
import { writeSync } from "node:fs";
import { isatty } from "node:tty";

/** Where the kit prints. Tests that run it in their own process put another `write` here. */
export const standardOutput = {
  write: writeWhole,
  /** How wide a terminal is; null where standard output is none. */
  columns: (): number | null => (isatty(1) ? process.stdout.columns : null),
};

let failure: Error | null = null;

/** What kept standard output from being written since the last call. A reader that went away (`| head`) is no failure. */
export function takeOutputFailure(): Error | null {
  const taken = failure;
  failure = null;
  return taken;
}

/** Prints a line. @returns whether it was written, or has no reader */
export function print(line: string): boolean {
  return printText(`${line}\n`);
}

/** Prints lines that end as lines do. @returns whether they were written, or have no reader */
export function printText(text: string): boolean {
  try {
    standardOutput.write(text);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EPIPE") return true;
    failure ??= error as Error;
    return false;
  }
}

function writeWhole(text: string): void {
  let rest: Uint8Array = Buffer.from(text);
  while (rest.length > 0) rest = rest.subarray(writeSome(rest));
}

/** @returns how many bytes were written */
function writeSome(bytes: Uint8Array): number {
  try {
    return writeSync(1, bytes);
  } catch (error) {
    // Another program left the pipe non-blocking, and it is full for the moment.
    if ((error as NodeJS.ErrnoException).code !== "EAGAIN") throw error;
    Bun.sleepSync(5);
    return 0;
  }
}
