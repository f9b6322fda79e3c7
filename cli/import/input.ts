/**
 * The input of an import as files on disk: stdin kept in one, all of it checked, and where its companions
 * lie.
 */
import { createWriteStream, existsSync, openSync, rmSync } from "node:fs";
import { basename, dirname, extname, join } from "node:path";
import { pipeline } from "node:stream/promises";
import { formatJson } from "../client/json.ts";
import { makePrivateDirectory } from "../files/private-directory.ts";
import { systemCode } from "../files/system-code.ts";
import { amount, count } from "../outcome/amount.ts";
import { type Failure, failure } from "../outcome/failure.ts";
import { untilInterrupted } from "../outcome/until-interrupted.ts";
import type { EarlierJournal } from "./begin.ts";
import type { InputIdentity, Journal } from "./journal.ts";
import { type Format, type Header, InputError, type Row, readRows, type Source } from "./rows.ts";
import { place } from "./run.ts";

/**
 * A stream as an open file, since an import is read twice, first to check it. The file has no name any more, so
 * nothing is left of it however the process ends. @param name of the stream, for messages.
 * Throws an Interruption.
 */
export async function spool(
  stream: NodeJS.ReadableStream,
  name: string,
  interrupted: AbortSignal,
): Promise<{ fd: number } | Failure> {
  const directory = makePrivateDirectory("import");
  if (typeof directory !== "string") return directory;
  try {
    const path = join(directory, "stdin");
    const written = openSync(path, "wx", 0o600);
    const fd = openSync(path, "r");
    rmSync(directory, { recursive: true });
    await untilInterrupted(pipeline(stream, createWriteStream("", { fd: written })), interrupted);
    return { fd };
  } catch (error) {
    rmSync(directory, { recursive: true, force: true });
    return failure(
      "failure",
      `${name} could not be kept in ${directory} (${systemCode(error)}); nothing was sent`,
      "Make room there, or set TMPDIR.",
    );
  }
}

type Survey = InputIdentity & { header: Header };

/**
 * Reads all rows before anything is sent: a file that breaks off in the middle is refused as a whole, and
 * a resumed import must be of the same rows.
 */
export async function survey(
  { source, name }: { source: Source; name: string },
  format: Format,
  earlier: EarlierJournal,
): Promise<Survey | Failure> {
  const journal = earlier.kind === "resume" ? earlier.journal : undefined;
  const done = earlier.kind === "done" ? earlier.journal : undefined;
  let header: Header = [];
  let rows = 0;
  let repeated = 0;
  const digest = new Bun.CryptoHasher("sha256");
  try {
    for await (const row of readRows(source, format, (columns) => {
      header = columns;
      digest.update(`${JSON.stringify(columns)}\n`);
    })) {
      const known = journal?.row(row.number);
      if (known !== undefined && known.fingerprint !== row.fingerprint)
        return changed(name, `${place(row)} differs`);
      if (row.id === undefined && done?.created(row.fingerprint)) repeated += 1;
      rows += 1;
      digest.update(`${contentOf(row)}\n`);
    }
  } catch (error) {
    return unreadable(name, error);
  }
  if (repeated > 0) return importedAlready(name, repeated, rows);
  if (journal !== undefined && journal.lastRow() > rows) return changed(name, `row ${rows + 1} is missing`);
  const surveyed = { rows, digest: digest.digest("hex"), header };
  const before = journal?.record.input;
  if (before && before.rows !== rows)
    return changed(name, `it had ${amount(before.rows, "row")} and has ${count(rows)} now`);
  if (before && before.digest !== surveyed.digest)
    return changed(name, "a row that was not sent yet differs");
  return surveyed;
}

function importedAlready(name: string, repeated: number, rows: number): Failure {
  return failure(
    "usage",
    `${name} was imported before: ${count(repeated)} of its ${amount(rows, "row")} created customers then, and would create them a second time; nothing was sent`,
    "To update those customers instead, give --match email. To create all of them again, give --again.",
  );
}

/** The same for the same row, whatever quotes and line ends it is written with in CSV. */
function contentOf({ source }: Row): string {
  return source.format === "csv" ? JSON.stringify(source.cells) : formatJson(source.object);
}

function changed(input: string, how: string): Failure {
  return failure(
    "usage",
    `${input} is not the file that was imported before: ${how}; nothing was sent`,
    "Restore it and use --resume, or start over with --restart: rows that were imported are then sent again.",
  );
}

/** What an error in reading means before anything was sent. */
function unreadable(input: string, error: unknown): Failure {
  if (error instanceof InputError) {
    return failure(
      "usage",
      `${input}: ${error.message}`,
      "Nothing was sent. Correct the file and run it again.",
    );
  }
  return failure(
    "usage",
    `${input} can't be read (${systemCode(error)})`,
    "Nothing was sent. Check the path.",
  );
}

/** `customers.csv` → `customers.failed.csv`, and with a number where that exists. */
export function failedRowsPath(input: string, format: Format): string {
  const extension = extname(input) || `.${format}`;
  const stem = join(dirname(input), basename(input, extname(input)));
  for (let copy = 1; ; copy += 1) {
    const path = `${stem}.failed${copy === 1 ? "" : `-${copy}`}${extension}`;
    if (!existsSync(path)) return path;
  }
}

/** The failed rows of a complete import, with their reasons, in the order of the input. */
export async function* failedRows(
  rows: AsyncIterable<Row>,
  journal: Journal,
): AsyncGenerator<{ row: Row; reason: string }> {
  for await (const row of rows) {
    const record = journal.row(row.number);
    if (record?.state === "failed") yield { row, reason: record.reason ?? "" };
  }
}
