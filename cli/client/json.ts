/**
 * JSON whose values come out as they came in (RFC 8259).
 *
 * `JSON.parse` would round 9007199254740993, turn `1.10` into `1.1`, move members whose names look like
 * integers to the front, and give `__proto__` a meaning. Here a number keeps its source text and an object
 * is a Map, so order and every name survive. Of members with the same name the last one counts, as with
 * `JSON.parse`; RFC 8259 §4 leaves that open.
 */
export type Json = null | boolean | string | JsonNumber | JsonArray | JsonObject;
type JsonArray = readonly Json[];
export type JsonObject = ReadonlyMap<string, Json>;

/** A number as it was written, such as `1.10` or `1e400`. Always valid JSON number syntax. */
export class JsonNumber {
  readonly source: string;

  constructor(source: string) {
    if (!NUMBER.test(source)) throw new SyntaxError(`not a JSON number: ${source}`);
    this.source = source;
  }
}

/** Arrays and objects within each other; more is refused, because printing them would exhaust the stack. */
export const JSON_DEPTH_MAX = 500;

const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;
const WORD_END = /[\s,\]}]/g;

type Open = { value: Json[] | Map<string, Json>; name?: string };

/**
 * Parses one JSON text. A byte order mark before it is tolerated (RFC 8259 §8.1 allows that).
 * Throws a SyntaxError for what is not JSON and for more than JSON_DEPTH_MAX levels.
 * @param repeated is called with the name of a member that its object has already.
 */
export function parseJson(source: string, repeated?: (name: string) => void): Json {
  const text = source.replace(/^\uFEFF/, "");
  // The judge of the syntax: the loop below can then read tokens without checking them.
  const parsed: unknown = JSON.parse(text);
  if (repeated === undefined && survivesParsing(parsed)) return new Map(Object.entries(parsed));
  const open: Open[] = [];
  let result: Json = null;
  const place = (value: Json): void => {
    const parent = open.at(-1);
    if (parent === undefined) result = value;
    else if (Array.isArray(parent.value)) parent.value.push(value);
    else if (parent.name !== undefined) {
      if (parent.value.has(parent.name)) repeated?.(parent.name);
      parent.value.set(parent.name, value);
      delete parent.name;
    }
  };
  let at = 0;
  while (at < text.length) {
    const character = text[at] as string;
    const start = at;
    at += 1;
    if (" \t\r\n,:".includes(character)) continue;
    if (character === "{") open.push({ value: new Map() });
    else if (character === "[") open.push({ value: [] });
    else if (character === "}" || character === "]") {
      const closed = open.pop();
      if (closed !== undefined) place(closed.value);
    } else if (character === '"') {
      at = stringEnd(text, start);
      const string = stringIn(text.slice(start, at));
      const parent = open.at(-1);
      if (parent?.value instanceof Map && parent.name === undefined) parent.name = string;
      else place(string);
    } else {
      at = wordEnd(text, start);
      place(scalar(text.slice(start, at)));
    }
    if (open.length > JSON_DEPTH_MAX)
      throw new SyntaxError(`JSON nested deeper than ${JSON_DEPTH_MAX} levels`);
  }
  return result;
}

/**
 * The value as one line. Strings are escaped as JSON.stringify does (lone surrogates as `\udXXX`), numbers
 * are copied. @param sorted the members, not as they came.
 */
export function formatJson(value: Json, sorted = false): string {
  if (value instanceof JsonNumber) return value.source;
  if (isJsonArray(value)) return `[${value.map((item) => formatJson(item, sorted)).join()}]`;
  if (!isJsonObject(value)) return JSON.stringify(value);
  const members = [...value].map(([name, member]) => `${JSON.stringify(name)}:${formatJson(member, sorted)}`);
  return `{${(sorted ? members.sort() : members).join()}}`;
}

/** The same over several lines. @param spaces of each level; 0 for one line. */
export function indentJson(value: Json, spaces: number, newline = "\n"): string {
  if (spaces === 0) return formatJson(value);
  const inner = newline + " ".repeat(spaces);
  const block = (left: string, parts: readonly string[], right: string) =>
    parts.length === 0 ? left + right : left + inner + parts.join(`,${inner}`) + newline + right;
  const indented = (item: Json) => indentJson(item, spaces, inner);
  if (isJsonArray(value)) return block("[", value.map(indented), "]");
  if (!isJsonObject(value)) return formatJson(value);
  const members = [...value].map(([name, member]) => `${JSON.stringify(name)}: ${indented(member)}`);
  return block("{", members, "}");
}

/** Equal as written: members in any order, numbers by their text (`1.10` is not `1.1`). */
export function jsonEquals(a: Json, b: Json): boolean {
  return formatJson(a, true) === formatJson(b, true);
}

export function isJsonObject(value: Json | undefined): value is JsonObject {
  return value instanceof Map;
}

export function isJsonArray<Item = Json>(value: unknown): value is readonly Item[] {
  return Array.isArray(value);
}

/**
 * True of an object without numbers, nested values, and names that look like integers, as nearly every customer is:
 * `JSON.parse` changes nothing of it, and alone takes half of the time (1.7 instead of 3.2 µs for a customer).
 */
function survivesParsing(value: unknown): value is Record<string, string | boolean | null> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
  return Object.entries(value).every(
    ([name, member]) =>
      (typeof member === "string" || typeof member === "boolean" || member === null) && !/^\d+$/.test(name),
  );
}

function stringIn(token: string): string {
  return token.includes("\\") ? JSON.parse(token) : token.slice(1, -1);
}

function stringEnd(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); ; end = text.indexOf('"', end + 1)) {
    let backslashes = 0;
    while (text[end - 1 - backslashes] === "\\") backslashes += 1;
    if (backslashes % 2 === 0) return end + 1; // of an odd number, the last one escapes the quote
  }
}

function wordEnd(text: string, start: number): number {
  WORD_END.lastIndex = start;
  return WORD_END.exec(text)?.index ?? text.length;
}

function scalar(token: string): Json {
  return /^[tfn]/.test(token) ? JSON.parse(token) : new JsonNumber(token);
}
