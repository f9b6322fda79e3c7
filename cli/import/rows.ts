/**
 * The rows of an import, streamed from CSV (RFC 4180, with a header) or NDJSON. A file is read twice: once
 * to check all of it before anything is sent, once to import it. Memory holds one row at a time.
 */
import { createReadStream, readSync } from "node:fs";
import { pipeline, Readable } from "node:stream";
import { CsvError, parse as csvParser } from "csv-parse";
import { REGISTRY } from "../client/customer.ts";
import { isJsonObject, type Json, type JsonObject, parseJson } from "../client/json.ts";
import { canBeId } from "../client/wire/request.ts";
import { readCell } from "../output/csv-cell.ts";

export type Row = {
  /** From 1; the header and blank lines are not counted. */
  number: number;
  /** Where it begins in the file, from 1, as an editor counts. */
  line: number;
  /** Absent: the row creates a customer. */
  id?: string;
  /** Pins the version that the row was made from. */
  etag?: string;
  /** What is to be set; blank CSV cells are not in it. CSV knows text only. */
  values: JsonObject;
  /** The row as it came, for the file of failed rows. */
  source: RowSource;
  /** Of the row's content: shows on `--resume` whether it is still the same row. */
  fingerprint: number;
};
type RowSource = { format: "csv"; cells: readonly string[] } | { format: "ndjson"; object: JsonObject };
export type Format = RowSource["format"];

/** The columns of a CSV file, as written; NDJSON has none. */
export type Header = readonly string[];

/** Thrown while reading: the input can't be understood. The message names the line and what to correct. */
export class InputError extends Error {}

/**
 * Columns that describe the row and not the customer, in any case. `reason` is what a failed row carries.
 */
const OF_THE_ROW = ["id", "etag", "reason"] as const;

export function isOfTheRow(column: string): boolean {
  return OF_THE_ROW.some((name) => name === column.toLowerCase());
}

const CHUNK_BYTES = 65_536;
const RECORD_CHARACTERS_MAX = 1_048_576;
/**
 * 53 bits: a number of JavaScript and of SQLite. A million rows against a million meet by chance once in
 * 9,000 imports.
 */
const FINGERPRINT_MASK = 0x1f_ffff_ffff_ffffn;

/** A path, or a file that is open for reading. */
export type Source = string | number;

/** @param onHeader called once, before the first row, with the columns of a CSV file. */
export function readRows(
  source: Source,
  format: Format,
  onHeader: (header: Header) => void = () => {},
): AsyncIterable<Row> {
  return format === "csv" ? readCsv(source, onHeader) : readNdjson(source);
}

/**
 * By the file's name, else by its first character: NDJSON begins with an object (an array is recognized
 * later).
 */
export async function detectFormat(source: Source, name: string): Promise<Format> {
  if (/\.csv$/i.test(name)) return "csv";
  if (/\.(ndjson|jsonl|json)$/i.test(name)) return "ndjson";
  try {
    for await (const chunk of bytesOf(source))
      return /^\uFEFF?\s*[{[]/.test(chunk.toString()) ? "ndjson" : "csv";
  } catch {
    // It is reported when its rows are read.
  }
  return "csv";
}

async function* readCsv(source: Source, onHeader: (header: Header) => void): AsyncGenerator<Row> {
  const parser = csvParser({
    bom: true,
    relax_column_count: true, // refused below, with the line and both counts
    skip_empty_lines: true,
    skip_records_with_empty_values: true, // the `,,,` that spreadsheets leave behind
    max_record_size: RECORD_CHARACTERS_MAX,
    on_record: locate,
  });
  pipeline(Readable.from(decoded(source)), parser, () => {}); // an error of the file arrives through the parser
  let header: Header | undefined;
  let number = 0;
  let lastLine = 0;
  // csv-parse counts a line break of two characters (CRLF) in a quoted cell twice.
  let surplus = 0;
  /** Where the records begin that are parsed, and not read here yet. */
  const begins: number[] = [];
  try {
    for await (const cells of parser as AsyncIterable<string[]>) {
      const line = begins.shift() as number;
      if (header === undefined) {
        header = cells.map((name) => name.trim());
        checkHeader(header);
        onHeader(header);
        continue;
      }
      number += 1;
      yield csvRow(header, cells, number, line);
    }
  } catch (error) {
    throw csvError(error, lastLine + 1);
  }
  if (header === undefined)
    throw new InputError("the file is empty: a CSV file begins with a line of column names");

  /** Not in the loop above: at an error the parser drops the records that were not read yet. */
  function locate(cells: string[], info: { lines: number }): string[] {
    begins.push(info.lines - surplus - count(cells, /[\r\n]/g));
    surplus += count(cells, /\r\n/g);
    lastLine = info.lines - surplus;
    return cells;
  }
}

function checkHeader(header: Header): void {
  const [only = ""] = header;
  if (header.length === 1 && /[;\t|]/.test(only)) {
    throw new InputError(`line 1: columns are separated by commas, and this line has none: ${only}`);
  }
  // Every field of the specification, and what describes the row: without one of them it is no header.
  if (!header.some((column) => isOfTheRow(column) || REGISTRY.includes(column.toLowerCase()))) {
    throw new InputError(
      `line 1 names none of the columns ${REGISTRY.join(", ")}: a CSV file begins with a line of column names`,
    );
  }
  const seen = new Set<string>();
  for (const column of header) {
    if (column.trim() === "") throw new InputError("line 1: a column has no name");
    const name = column.toLowerCase();
    if (seen.has(name)) throw new InputError(`line 1: the column ${column} appears twice`);
    seen.add(name);
  }
}

function csvRow(header: Header, cells: string[], number: number, line: number): Row {
  if (cells.length !== header.length) {
    throw new InputError(`line ${line}: ${cells.length} cells where the header has ${header.length}`);
  }
  const members = header.flatMap((column, at): [string, Json][] => {
    const cell = cells[at] as string;
    return cell === "" ? [] : [[column, readCell(cell)]];
  });
  return makeRow(new Map(members), { format: "csv", cells }, JSON.stringify([header, cells]), number, line);
}

function count(cells: readonly string[], pattern: RegExp): number {
  return cells.reduce((sum, cell) => sum + (cell.match(pattern)?.length ?? 0), 0);
}

const MISPLACED_QUOTE =
  "a quote stands inside a cell: put the whole cell in quotes, and write each quote in it twice";
const CSV_FAULTS: Readonly<Record<string, string>> = {
  INVALID_OPENING_QUOTE: MISPLACED_QUOTE,
  CSV_INVALID_CLOSING_QUOTE: MISPLACED_QUOTE,
  CSV_QUOTE_NOT_CLOSED: "a quote that opens in this row is not closed",
  CSV_MAX_RECORD_SIZE: `the row that begins here has more than ${RECORD_CHARACTERS_MAX} characters; is a quote in it not closed?`,
};

/**
 * @param line where the record begins that can't be read: the parser notices an open quote only far behind
 * it.
 */
function csvError(error: unknown, line: number): unknown {
  if (!(error instanceof CsvError)) return error;
  return new InputError(`line ${line}: ${CSV_FAULTS[error.code] ?? `not CSV: ${error.message}`}`);
}

async function* readNdjson(source: Source): AsyncGenerator<Row> {
  let number = 0;
  let line = 0;
  for await (const text of lines(decoded(source))) {
    line += 1;
    if (text.trim() === "") continue;
    if (number === 0 && /^\uFEFF?\s*\[/.test(text)) {
      const file = typeof source === "string" ? source : "FILE";
      throw new InputError(
        `line ${line}: the file is one JSON array; make it an object a line: jq -c '.[]' ${file} > ${file.replace(/\.json$/i, "")}.ndjson`,
      );
    }
    number += 1;
    yield ndjsonRow(text, number, line);
  }
}

function ndjsonRow(text: string, number: number, line: number): Row {
  let value: Json;
  try {
    value = parseJson(text, (name) => {
      throw new InputError(`line ${line}: the member ${name} appears twice`);
    });
  } catch (error) {
    if (error instanceof InputError) throw error;
    throw new InputError(`line ${line}: not JSON: ${(error as Error).message}`);
  }
  if (!isJsonObject(value))
    throw new InputError(`line ${line}: a JSON object is expected, one a line (of an array: jq -c '.[]')`);
  return makeRow(unwrapped(value), { format: "ndjson", object: value }, text, number, line);
}

/** What `--with-etag` writes, `{"etag": …, "customer": {…}}`, is read as the customer with its etag. */
function unwrapped(object: JsonObject): JsonObject {
  const customer = object.get("customer");
  if (!isJsonObject(customer) || !object.has("etag")) return object;
  const rest = [...object].filter(([name]) => name !== "customer");
  return new Map([...customer, ...rest]);
}

function makeRow(members: JsonObject, source: RowSource, text: string, number: number, line: number): Row {
  const ofTheRow: Partial<Record<(typeof OF_THE_ROW)[number], string>> = {};
  const values = new Map<string, Json>();
  const seen = new Set<string>();
  for (const [name, value] of members) {
    const lower = name.toLowerCase();
    // Names match without regard to case: of two members for one field, which is meant is not known.
    if (seen.has(lower)) throw new InputError(`line ${line}: the member ${name} appears twice`);
    seen.add(lower);
    const own = OF_THE_ROW.find((column) => column === lower);
    if (own === undefined) values.set(name, value);
    else if (typeof value === "string") ofTheRow[own] = own === "reason" ? value : value.trim();
    else if (value !== null) throw new InputError(`line ${line}: ${name} is not a string`);
  }
  const { id, etag } = ofTheRow;
  if (id && !canBeId(id)) throw new InputError(`line ${line}: "${id}" is not a customer id`);
  if (etag !== undefined && id === undefined) {
    throw new InputError(`line ${line}: an etag pins the version of a customer, but the row names no id`);
  }
  const fingerprint = Number(Bun.hash.xxHash64(text) & FINGERPRINT_MASK);
  return { number, line, ...(id ? { id } : {}), ...(etag ? { etag } : {}), values, source, fingerprint };
}

/** The file as text; anything but UTF-8 is refused, because guessing would write wrong names. */
async function* decoded(source: Source): AsyncGenerator<string> {
  const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  try {
    for await (const chunk of bytesOf(source)) yield decoder.decode(chunk, { stream: true });
    yield decoder.decode();
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    throw new InputError("the file is not UTF-8; save it as UTF-8 (in a spreadsheet: “CSV UTF-8”)");
  }
}

async function* bytesOf(source: Source): AsyncGenerator<Buffer> {
  if (typeof source === "string") return yield* createReadStream(source, { highWaterMark: CHUNK_BYTES });
  for (let at = 0; ; ) {
    const chunk = Buffer.alloc(CHUNK_BYTES);
    const length = readSync(source, chunk, 0, CHUNK_BYTES, at);
    if (length === 0) return;
    at += length;
    yield chunk.subarray(0, length);
  }
}

async function* lines(chunks: AsyncIterable<string>): AsyncGenerator<string> {
  let rest = "";
  for await (const chunk of chunks) {
    const parts = (rest + chunk).split("\n");
    rest = parts.pop() ?? "";
    if (rest.length > RECORD_CHARACTERS_MAX)
      throw new InputError(`a line is longer than ${RECORD_CHARACTERS_MAX} characters`);
    yield* parts;
  }
  if (rest !== "") yield rest;
}
