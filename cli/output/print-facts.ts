import { indentJson, type Json, type JsonObject } from "../client/json.ts";
import { jsonIndent, outputFormat, type Printing } from "./print-customers.ts";
import { formatRecord, formatTable } from "./table.ts";
import { escapedInJson } from "./visible-controls.ts";

/** Facts of this program, not of a customer: a record on a terminal, JSON elsewhere. */
export async function printFacts(printing: Printing, facts: JsonObject): Promise<void> {
  await print(printing, facts, formatRecord(facts, printing.terminal));
}

export async function printRows(printing: Printing, rows: readonly JsonObject[]): Promise<void> {
  await print(printing, rows, rows.length === 0 ? "" : formatTable(rows, printing.terminal));
}

async function print(printing: Printing, value: Json, table: string): Promise<void> {
  const text =
    outputFormat(printing) === "table"
      ? table
      : `${escapedInJson(indentJson(value, jsonIndent(printing)))}\n`;
  await printing.out.write(text);
}
