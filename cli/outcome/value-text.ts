/** Values of fields in messages. */
import { type Customer, memberNamed } from "../client/customer.ts";
import { formatJson, type Json, type JsonObject, jsonEquals } from "../client/json.ts";
import type { FieldConflict } from "../client/loop/field-conflicts.ts";

function valueText(value: Json | undefined): string {
  return value === undefined ? "(absent)" : formatJson(value);
}

/** `name: "Ada" -> "Eve"`. */
export function changeLine(field: string, from: Json | undefined, to: Json | undefined): string {
  return `${field}: ${valueText(from)} -> ${valueText(to)}`;
}

/** The fields that `values` would change. @param current undefined for a creation. */
export function changedFields(values: JsonObject, current: Customer | undefined) {
  return [...values]
    .map(([field, to]) => ({ field, from: current && memberNamed(current.value, field)?.value, to }))
    .filter(({ from, to }) => !jsonEquals(from ?? null, to));
}

/** One line for each field that `values` would change. */
export function changeLines(values: JsonObject, current: Customer | undefined): string[] {
  return changedFields(values, current).map(({ field, from, to }) => changeLine(field, from, to));
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
