/** Facts of this program, not of a customer, in every format that customers have. */
import { Customer } from "../client/customer.ts";
import type { JsonObject } from "../client/json.ts";
import { openListPrinter, outputFormat, type Printing, printCustomer } from "./print-customers.ts";
import { escapedInJson } from "./visible-controls.ts";

/** One record: an object in JSON, a heading and a row in CSV. */
export async function printFacts(printing: Printing, facts: JsonObject): Promise<void> {
  await printCustomer(escaping(printing), new Customer(undefined, facts), { withEtag: false });
}

/** @param columns the members of each row, in their order: the heading of CSV where there is no row. */
export async function printRows(
  printing: Printing,
  columns: readonly string[],
  rows: readonly JsonObject[],
): Promise<void> {
  const printer = openListPrinter(escaping(printing), { fields: columns, withEtag: false });
  await printer.write(rows.map((value) => ({ etag: undefined, value })));
  await printer.end();
}

/** Of these JSON is no server's own text: what could steer a terminal is escaped before it reaches one through a pipe. */
function escaping(printing: Printing): Printing {
  const format = outputFormat(printing);
  if (format !== "json" && format !== "ndjson") return printing;
  const write: Printing["out"]["write"] = (data) =>
    printing.out.write(typeof data === "string" ? escapedInJson(data) : data);
  return { ...printing, out: { write } };
}
