import { fstatSync, statSync, writeSync } from "node:fs";
import { CommandRefused } from "../../domain/command-refused.ts";

/** Standard output could not be written whole. */
export class OutputLost extends CommandRefused {
  /** A sentence. */
  readonly reason: string;

  constructor(cause: Error) {
    const reason = `Standard output can't be written: ${cause.message}.`;
    super(`${reason} The output is not whole; what the command changed stays changed.`, { cause });
    this.reason = reason;
  }
}

/** Where commands write. Tests that run a command in their own process put another one here. */
export const standardOutput = { write: writeWhole, isDiscarded };

/**
 * Writes a line to standard output. `console.log` drops what can't be written and the command ends with 0: a
 * token would be lost, or an export cut off, without a word. `process.stdout` leaves a pipe non-blocking, and the next
 * program of a script that writes to the same pipe fails where it is full.
 *
 * @throws OutputLost where it can't be written whole
 */
export function print(line: string): void {
  standardOutput.write(`${line}\n`);
}

/**
 * To be asked before something is made that nothing but the output will hold, such as a token.
 *
 * @throws CommandRefused where standard output keeps nothing; Bun opens `/dev/null` in place of one that is closed
 */
export function requireKeptOutput(): void {
  if (!standardOutput.isDiscarded()) return;
  throw new CommandRefused(
    "Standard output is closed, or leads to /dev/null: the token would be lost, so nothing was done. Write it to a file.",
  );
}

function isDiscarded(): boolean {
  const output = fstatSync(1);
  return output.isCharacterDevice() && output.rdev === statSync("/dev/null").rdev;
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
    const fault = error as NodeJS.ErrnoException;
    // A pipe of another program may be non-blocking, and full for the moment.
    if (fault.code !== "EAGAIN") throw new OutputLost(fault);
    Bun.sleepSync(1);
    return 0;
  }
}
