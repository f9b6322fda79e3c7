/** The values that a program gives, as JSON whose numbers keep their digits. */
import { demand } from "./customers-error.ts";
import { isJsonArray, JSON_DEPTH_MAX, type Json, JsonNumber } from "./json.ts";

/** What a value may be: `JsonNumber` where its digits must stay as they are. NaN and Infinity are refused (`usage`). */
export type Value =
  | null
  | boolean
  | string
  | number
  | JsonNumber
  | readonly Value[]
  | { readonly [name: string]: Value };
/**
 * Named fields and their new values; null removes a member (RFC 7396). A name matches without regard to case. Values are
 * nested at most 500 levels deep.
 */
export type Fields = Readonly<Record<string, Value>>;

/** Throws a CustomersError of kind `usage` for what is not a Value. */
export function exactValues(fields: Fields, depth = 0): ReadonlyMap<string, Json> {
  demandObject("the fields", fields);
  return new Map(Object.entries(fields).map(([name, value]) => [name, exact(name, value, depth)]));
}

/** @param name of the member, for the message. @param depth of the value. */
function exact(name: string, value: Value, depth: number): Json {
  if (typeof value === "number") {
    demand(Number.isFinite(value), `"${name}" is ${value}, which JSON does not have`);
    return new JsonNumber(String(value));
  }
  if (value === null || typeof value === "string" || typeof value === "boolean") return value;
  if (value instanceof JsonNumber) return value;
  demand(value !== undefined, `"${name}" is undefined`);
  demand(depth < JSON_DEPTH_MAX, `"${name}" holds itself, or more than ${JSON_DEPTH_MAX} levels`);
  if (isJsonArray<Value>(value)) return value.map((item) => exact(name, item, depth + 1));
  demandObject(`"${name}"`, value);
  return exactValues(value, depth + 1);
}

/** A Date or a Map would be sent as an empty object. */
function demandObject(what: string, value: unknown): void {
  const type = Object.prototype.toString.call(value).slice(8, -1);
  demand(type === "Object", `${what}: ${type} is no JSON object`);
}
