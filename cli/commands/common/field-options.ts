/** `--name`, `--email`, `--status`, and `--set`, `--set-json`, `--unset` for every field that a server may have. */
import { InvalidArgumentError, Option } from "@commander-js/extra-typings";
import { parseJsonOrUndefined } from "../../client/customer.ts";
import type { Json } from "../../client/json.ts";
import { UsageError } from "../../outcome/failure.ts";

type Assignment = readonly [field: string, value: Json];

export type FieldOptions = {
  name?: string;
  email?: string;
  status?: string;
  set?: readonly Assignment[];
  setJson?: readonly Assignment[];
  unset?: readonly string[];
};

export const SET = new Option("--set <field=value>", "set any field to a text (repeatable)").argParser(
  assignment,
);
export const SET_JSON = new Option(
  "--set-json <field=json>",
  "set any field to a JSON value: 5, true, null, [1] (repeatable)",
).argParser(json);
export const UNSET = new Option(
  "--unset <field>",
  "remove the field from the customer (repeatable)",
).argParser((field: string, earlier: readonly string[] = []): readonly string[] => [
  ...earlier,
  field.trim(),
]);

/** For `--name`, `--email` and `--status`: the last of two would win in silence. */
export function once(value: string, earlier: string | undefined): string {
  if (earlier === undefined) return value;
  throw new InvalidArgumentError("It is given twice: give each field once.");
}

/** The values by field, as written; a field that is named twice is refused (UsageError). */
export function fieldValues(options: FieldOptions): Map<string, Json> {
  const named = (["name", "email", "status"] as const).flatMap((field): Assignment[] => {
    const value = options[field];
    return value === undefined ? [] : [[field, value]];
  });
  // JSON Merge Patch removes a member by null (RFC 7396).
  const removed = (options.unset ?? []).map((field): Assignment => [field, null]);
  const values = new Map<string, Json>();
  const seen = new Set<string>();
  for (const [field, value] of [...named, ...(options.set ?? []), ...(options.setJson ?? []), ...removed]) {
    // Field names match without regard to case (specification 2.2).
    const key = field.toLowerCase();
    if (seen.has(key)) throw new UsageError(`the field ${field} is given twice`, "Give each field once.");
    seen.add(key);
    values.set(field, value);
  }
  return values;
}

function split(text: string, example: string): [string, string] {
  const at = text.indexOf("=");
  if (at < 1) throw new InvalidArgumentError(`Give it as FIELD=VALUE, such as ${example}.`);
  return [text.slice(0, at).trim(), text.slice(at + 1)];
}

function assignment(text: string, earlier: readonly Assignment[] = []): readonly Assignment[] {
  return [...earlier, split(text, "city=Paris")];
}

function json(text: string, earlier: readonly Assignment[] = []): readonly Assignment[] {
  const [field, source] = split(text, "limit=500");
  const value = parseJsonOrUndefined(source);
  if (value === undefined) {
    throw new InvalidArgumentError(`"${source}" is not JSON; a text is set with --set, or in double quotes.`);
  }
  return [...earlier, [field, value]];
}
