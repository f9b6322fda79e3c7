/**
 * A cell of CSV, for one value. A spreadsheet runs a cell that begins with `=`, `+`, `-`, `@`, a tab or a
 * carriage return (and the full-width forms of the first four) as a formula; an apostrophe in front makes it
 * text (OWASP, "CSV Injection"). So that nothing is lost, values that begin with apostrophes and then one of
 * these get one more, and reading takes exactly one away: `readCell(textCell(text)) === text`, always.
 */
import { formatJson, type Json, JsonNumber } from "../client/json.ts";

const FORMULA = /^'*[=+\-@\t\r\uFF1D\uFF0B\uFF0D\uFF20]/;
const GUARDED = /^'+[=+\-@\t\r\uFF1D\uFF0B\uFF0D\uFF20]/;

export function textCell(text: string): string {
  return FORMULA.test(text) ? `'${text}` : text;
}

/** The text that a cell stands for. */
export function readCell(cell: string): string {
  return GUARDED.test(cell) ? cell.slice(1) : cell;
}

/** One record of RFC 4180, with a line feed alone, which every reader takes. */
export function csvLine(cells: readonly string[]): string {
  return `${cells.map(quoted).join(",")}\n`;
}

function quoted(cell: string): string {
  return /[",\r\n]|^\s|\s$/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell;
}

/** A number stays as it is written (`-5` is no formula); null and what is absent are blank; the rest is JSON text. */
export function valueCell(value: Json | undefined): string {
  if (value === undefined || value === null) return "";
  if (typeof value === "string") return textCell(value);
  return value instanceof JsonNumber ? value.source : textCell(formatJson(value));
}
