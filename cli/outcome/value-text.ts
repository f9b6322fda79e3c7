/** Values of fields in messages. */
import { formatJson, type Json } from "../client/json.ts";
import type { FieldConflict } from "../client/loop/field-conflicts.ts";

export function valueText(value: Json | undefined): string {
  return value === undefined ? "(absent)" : formatJson(value);
}

/** `name: "Ada" -> "Eve"`. */
export function changeLine(field: string, from: Json | undefined, to: Json | undefined): string {
  return `${field}: ${valueText(from)} -> ${valueText(to)}`;
}

/** base / theirs / mine, a line each. */
export function fieldLines(fields: readonly FieldConflict[]): string[] {
  return fields.flatMap(({ field, base, theirs, mine }) => [
    `  ${field}`,
    `    base:   ${valueText(base)}`,
    `    theirs: ${valueText(theirs)}`,
    ...(mine === undefined ? [] : [`    mine:   ${valueText(mine)}`]),
  ]);
}
