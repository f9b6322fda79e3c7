/** Customers on stdout, in the format that was asked for. JSON is the server's own text, or its values unrounded. */

import { type Customer, memberNamed, plainText, REGISTRY } from "../client/customer.ts";
import { formatJson, indentJson, type Json, type JsonObject } from "../client/json.ts";
import type { OutputFormat } from "../config/flags.ts";
import { type Failure, failure } from "../outcome/failure.ts";
import { nearestOf } from "../outcome/nearest.ts";
import { csvLine, valueCell } from "./csv-cell.ts";
import type { DataStream } from "./data-stream.ts";
import { columnNames, formatRecord, formatTable } from "./table.ts";
import type { Terminal } from "./terminal.ts";
import { escapedInJson, visibleControls } from "./visible-controls.ts";

/** Where customers are printed, and in which format by choice. */
export type Printing = {
  out: Pick<DataStream, "write">;
  terminal: Pick<Terminal, "stdoutIsTerminal" | "color" | "columns">;
  settings: { output: OutputFormat | undefined };
};

export type PrintOptions = { fields?: readonly string[] | undefined; withEtag: boolean };

export function outputFormat({ settings, terminal }: Pick<Printing, "settings" | "terminal">): OutputFormat {
  return settings.output ?? (terminal.stdoutIsTerminal ? "table" : "json");
}

/** Spaces a level: on a terminal a person reads it; a program gets the server's own text. */
export function jsonIndent({ terminal }: Pick<Printing, "terminal">): number {
  return terminal.stdoutIsTerminal ? 2 : 0;
}

/** One customer. A failure only where `--output value` names a member that did not come. */
export async function printCustomer(
  invocation: Printing,
  customer: Customer,
  options: PrintOptions,
): Promise<Failure | undefined> {
  const format = outputFormat(invocation);
  if (format !== "table" && format !== "json") {
    const printer = openListPrinter(invocation, options);
    await printer.write([customer]);
    return printer.end();
  }
  const text =
    format === "table"
      ? formatRecord(record(customer, options), invocation.terminal)
      : customerJson(invocation, customer, options);
  await invocation.out.write(forTheReader(invocation, format, text));
  return undefined;
}

/** Data must not steer the terminal that shows it; a program gets it as it is. (A table has escapes of its own.) */
function forTheReader({ terminal }: Printing, format: OutputFormat, text: string): string {
  if (!terminal.stdoutIsTerminal || format === "table") return text;
  return format === "json" || format === "ndjson" ? escapedInJson(text) : visibleControls(text);
}

/** A bare customer is passed on as the server's own text. */
function customerJson(invocation: Printing, customer: Customer, options: PrintOptions): string {
  const indent = jsonIndent(invocation);
  const asItCame = indent === 0 && !options.withEtag;
  return `${asItCame ? customer.text.trim() : indentJson(shown(customer, options), indent)}\n`;
}

type Listed = Pick<Customer, "etag" | "value">;

/**
 * Customers of a list, page by page. `write` returns false when the reader is gone; `end` completes the
 * text. A table needs the widths of a whole page, so each page is aligned by itself.
 */
export type ListPrinter<Item> = {
  write(page: readonly Item[]): Promise<boolean>;
  end(): Promise<Failure | undefined>;
};

export function openListPrinter(invocation: Printing, options: PrintOptions): ListPrinter<Listed> {
  const format = outputFormat(invocation);
  const { terminal } = invocation;
  const out = { write: (text: string) => invocation.out.write(forTheReader(invocation, format, text)) };
  let printed = 0;
  let columns: readonly string[] | undefined;
  let refused: Failure | undefined;
  const page = async (customers: readonly Listed[]): Promise<boolean> => {
    if (format === "value") {
      const lines = valueLines(customers, options);
      if (typeof lines === "string") return out.write(lines);
      refused = lines;
      return false;
    }
    if (format === "json") {
      const items = customers.map((customer) => indentJson(shown(customer, options), jsonIndent(invocation)));
      return out.write((printed === 0 ? "[" : ",\n") + items.join(",\n"));
    }
    if (format === "ndjson") {
      return out.write(customers.map((customer) => `${formatJson(shown(customer, options))}\n`).join(""));
    }
    const records = customers.map((customer) => record(customer, options));
    if (format === "table") return out.write(formatTable(records, terminal));
    const first = columns === undefined;
    columns ??= columnNames(records);
    refused = withoutColumn(records, columns);
    return refused === undefined && (await out.write(csvRows(records, first, columns)));
  };
  return {
    async write(customers) {
      if (customers.length === 0) return true;
      const going = await page(customers);
      printed += customers.length;
      return going;
    },
    async end() {
      if (format === "json") await out.write(printed === 0 ? "[]\n" : "]\n");
      // A file without a heading could not be imported.
      if (format === "csv" && printed === 0 && refused === undefined) {
        await out.write(csvRows([], true, headingOf(options)));
      }
      return refused;
    },
  };
}

/**
 * `--output value`: the bare values of the named fields, tab-separated, a customer a line. Whatever stands in a
 * value, it makes no second line and no further column: `printf %b` gives back what was escaped.
 */
function valueLines(customers: readonly Listed[], { fields }: PrintOptions): string | Failure {
  const lines: string[] = [];
  for (const { value } of customers) {
    const cells: string[] = [];
    for (const field of fields ?? [...value.keys()]) {
      const member = memberNamed(value, field);
      if (member === undefined) return absent(field, value);
      cells.push(
        plainText(member.value).replaceAll(/[\\\t\n\r]/g, (character) => ESCAPES[character] ?? character),
      );
    }
    lines.push(`${cells.join("\t")}\n`);
  }
  return lines.join("");
}

const ESCAPES: Record<string, string> = { "\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r" };

function absent(field: string, value: JsonObject): Failure {
  const names = [...value.keys()];
  const near = nearestOf(field, names);
  return failure(
    "failure",
    `the server sent no member "${field}"`,
    near === undefined ? `It sent: ${names.join(", ")}.` : `Did you mean "${near}"?`,
  );
}

function shown(customer: Listed, { withEtag }: PrintOptions): Json {
  if (!withEtag) return customer.value;
  return new Map<string, Json>([
    ["etag", customer.etag ?? null],
    ["customer", customer.value],
  ]);
}

/** A row of a table or of CSV: the tag is one more column, as import reads it. */
function record(customer: Listed, { withEtag }: PrintOptions): JsonObject {
  return withEtag
    ? new Map<string, Json>([["etag", customer.etag ?? null], ...customer.value])
    : customer.value;
}

/** The heading is written once; a member that no column is for must not vanish from what looks whole. */
function withoutColumn(records: readonly JsonObject[], columns: readonly string[]): Failure | undefined {
  for (const row of records) {
    const name = [...row.keys()].find((member) => !columns.includes(member));
    if (name === undefined) continue;
    return failure(
      "failure",
      `customer ${plainText(memberNamed(row, "id")?.value ?? "?")} has a member "${name}" that those before did not have, and CSV has no column for it`,
      "Name the columns with --fields, or take --output ndjson.",
    );
  }
  return undefined;
}

/** Of an empty list, where the server shows no members: the fields that were asked for, else those of the specification. */
function headingOf({ fields = REGISTRY, withEtag }: PrintOptions): readonly string[] {
  return withEtag ? ["etag", ...fields] : fields;
}

function csvRows(records: readonly JsonObject[], withHeading: boolean, columns: readonly string[]): string {
  const rows = records.map((row) => csvLine(columns.map((name) => valueCell(row.get(name)))));
  return (withHeading ? csvLine(columns) : "") + rows.join("");
}
