/** Tables for people: aligned by display width, nothing in a cell can steer the terminal. */

import { plainText } from "../client/customer.ts";
import type { Json, JsonObject } from "../client/json.ts";
import { displayWidth, padEnd, truncate } from "./display-width.ts";
import { visibleControls } from "./visible-controls.ts";

type TableStyle = { color: boolean; columns: number | undefined };

const GAP = "  ";
const COLUMN_MIN = 6;

/** One customer, a line a member. */
export function formatRecord(record: JsonObject, style: TableStyle): string {
  const width = Math.max(0, ...[...record.keys()].map((name) => displayWidth(cellText(name))));
  const lines = [...record].map(([name, value]) => {
    const heading = padEnd(cellText(name), width);
    return `${bold(heading, style)}${GAP}${cellText(value)}`.trimEnd();
  });
  return lines.length === 0 ? "" : `${lines.join("\n")}\n`;
}

/** Many records, a line each, under the names of all their members. On a terminal, cells are cut to fit. */
export function formatTable(records: readonly JsonObject[], style: TableStyle): string {
  const names = columnNames(records);
  const rows = records.map((record) => names.map((name) => cellText(record.get(name))));
  const headings = names.map((name) => cellText(name));
  const widths = fitted(
    names.map((_, at) => Math.max(...[headings, ...rows].map((row) => displayWidth(row[at] ?? "")))),
    names.map((name) => !/^(?:id|etag)$/i.test(name)),
    style.columns,
  );
  const line = (cells: readonly string[]) =>
    cells
      .map((cell, at) => padEnd(truncate(cell, widths[at] ?? 0), widths[at] ?? 0))
      .join(GAP)
      .trimEnd();
  return [bold(line(headings), style), ...rows.map(line)].map((text) => `${text}\n`).join("");
}

export function columnNames(records: readonly JsonObject[]): string[] {
  return [...new Set(records.flatMap((record) => [...record.keys()]))];
}

/** An absent member is an empty cell; a line break would tear the row apart, so it is shown as `\n`. */
function cellText(value: Json | undefined): string {
  if (value === undefined || value === null) return "";
  return visibleControls(plainText(value).replaceAll("\n", "\\n").replaceAll("\t", "\\t"));
}

/**
 * Takes columns from the widest that may be cut until the line fits; below COLUMN_MIN it rather overflows.
 * An id or a tag is copied into the next command, so it is never cut.
 */
function fitted(
  widths: readonly number[],
  cuttable: readonly boolean[],
  columns: number | undefined,
): number[] {
  const result = [...widths];
  if (columns === undefined) return result;
  const total = () => result.reduce((sum, width) => sum + width, 0) + GAP.length * (result.length - 1);
  while (total() > columns) {
    const widest = Math.max(...result.filter((_, at) => cuttable[at]));
    if (widest <= COLUMN_MIN) break;
    const at = result.findIndex((width, index) => cuttable[index] && width === widest);
    result[at] = widest - 1;
  }
  return result;
}

function bold(text: string, style: TableStyle): string {
  return style.color ? `\u001b[1m${text}\u001b[0m` : text;
}
