/** The changes of a customer on stdout: columns for people, the server's own entries for programs. */
import { plainText } from "../client/customer.ts";
import { isJsonArray, isJsonObject, type Json, type JsonObject } from "../client/json.ts";
import { type ListPrinter, openListPrinter, outputFormat, type Printing } from "./print-customers.ts";

/** The members of an entry: the heading of CSV where there is none. */
const MEMBERS = [
  ...["time", "client", "operation", "changed"],
  ...["requestId", "etag", "previousEtag", "withoutIfMatch", "values"],
];

export function openHistoryPrinter(printing: Printing): ListPrinter<JsonObject> {
  const isTable = outputFormat(printing) === "table";
  // A line that is too long is wrapped rather than cut: who wrote and which version is what it is for.
  const uncut = { ...printing, terminal: { ...printing.terminal, columns: undefined } };
  const printer = openListPrinter(uncut, { fields: MEMBERS, withEtag: false });
  return {
    write: (entries) =>
      printer.write(
        entries.map((entry) => ({ etag: undefined, value: isTable ? historyRow(entry) : entry })),
      ),
    end: () => printer.end(),
  };
}

/** An entry as people read it: the time to the second, the version before and after. */
function historyRow(entry: JsonObject): JsonObject {
  const text = (name: string) => plainText(entry.get(name) ?? "");
  const changed = entry.get("changed");
  const blind = entry.get("withoutIfMatch") === true;
  return new Map<string, Json>([
    ["time", text("time").replace(/^(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)(?:\.\d+)?Z$/, "$1 $2Z")],
    ["client", text("client")],
    ["operation", blind ? `${text("operation")} without If-Match` : text("operation")],
    [
      "changed",
      isJsonArray<Json>(changed) ? changed.map((name) => changeOf(entry, plainText(name))).join(", ") : "",
    ],
    ["version", `${text("previousEtag") || "none"} -> ${text("etag") || "none"}`],
  ]);
}

/** The name of a field, and what it held before and after where the server keeps that. */
function changeOf(entry: JsonObject, name: string): string {
  const values = entry.get("values");
  const value = isJsonObject(values) ? values.get(name) : undefined;
  if (!isJsonObject(value)) return name;
  const [before = null, after = null] = [value.get("before"), value.get("after")];
  return before === null
    ? `${name} "${plainText(after)}"`
    : `${name} "${plainText(before)}" -> "${plainText(after)}"`;
}
