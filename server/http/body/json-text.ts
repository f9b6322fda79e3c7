import { isUtf8 } from "node:buffer";
import { ok, type Result, refuse } from "../../domain/problem.ts";

/** No body of this service needs more than two. */
const NESTING_MAX = 32;
/** On all levels together. No body of this service needs more than five. */
const PROPERTIES_MAX = 256;

/**
 * One JSON text in UTF-8 (RFC 8259, section 8.1), strictly: no byte order mark, no member named twice at the
 * top (which of the two counts is left open, section 4, so neither may). Deeper ones can't matter: no body of
 * this service has an object inside. Levels and properties are limited (section 9) before the text is parsed:
 * 32,768 nested arrays, or 6,000 properties of different names, took several milliseconds, and other requests
 * wait meanwhile.
 */
export function parseJsonText(bytes: Uint8Array): Result<unknown> {
  if (bytes.length === 0) return malformed("The body is empty; a JSON object is needed.");
  const counted = count(bytes);
  if (typeof counted === "string") {
    return malformed(`The body ${counted}. Send only the properties that the operation accepts.`);
  }
  // A fatal TextDecoder takes ten times as long.
  if (!isUtf8(bytes)) return malformed("The body is not UTF-8.");
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("utf8");
  if (text.startsWith("\ufeff")) return malformed("The body begins with a byte order mark; leave it out.");
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return malformed("The body is not one JSON text.");
  }
  // The parser keeps one of two members with the same name.
  if (!isObject(value) || Object.keys(value).length === counted.names.length) return ok(value);
  const repeated = repeatedName(bytes, counted.names);
  return malformed(`The body names the member \`${repeated.slice(0, 64).toWellFormed()}\` twice.`);
}

/** The places of the quotes around it. */
type Name = { readonly start: number; readonly end: number };

const QUOTE = 0x22;
const COLON = 0x3a;
const BACKSLASH = 0x5c;
/**
 * Up to here a string is searched in a loop. A native search is ten times as fast in a long one, but costs 0.2 µs to
 * begin: 20,000 empty strings took 4 ms.
 */
const SHORT_BYTES = 64;

/**
 * Counts the arrays and objects that are open at once, and the colons behind names, in bytes that need not be
 * JSON or UTF-8. No byte of a longer UTF-8 sequence is a quote, a bracket or a colon.
 *
 * @returns what the body has too much of, or the names of its top level if it is JSON
 */
function count(bytes: Uint8Array): string | { readonly names: readonly Name[] } {
  let depth = 0;
  let properties = 0;
  let start = 0;
  let end = 0;
  const names: Name[] = [];
  for (let at = 0; at < bytes.length; at += 1) {
    const byte = bytes[at] ?? 0;
    if (byte === QUOTE) {
      start = at;
      end = stringEnd(bytes, at);
      at = end;
    } else if (byte === COLON) {
      properties += 1;
      if (depth === 1) names.push({ start, end });
      if (properties > PROPERTIES_MAX) return `has more than ${PROPERTIES_MAX} properties`;
    } else {
      depth += nesting(byte);
      if (depth > NESTING_MAX) return `is nested more than ${NESTING_MAX} levels deep`;
    }
  }
  return { names };
}

/** @returns the place of the quote that closes the string which opens at `start`, or the end of the bytes */
function stringEnd(bytes: Uint8Array, start: number): number {
  const near = stringEndWithin(bytes, start + 1, Math.min(start + SHORT_BYTES, bytes.length));
  if (near !== null) return near;
  // Behind an escape a quote may not be the end.
  const quote = bytes.indexOf(QUOTE, start + 1);
  if (quote === -1) return bytes.length;
  if (bytes.subarray(start + 1, quote).indexOf(BACKSLASH) === -1) return quote;
  return stringEndWithin(bytes, start + 1, bytes.length) ?? bytes.length;
}

/** @returns null where the string does not end before `end` */
function stringEndWithin(bytes: Uint8Array, start: number, end: number): number | null {
  for (let at = start; at < end; at += 1) {
    if (bytes[at] === QUOTE) return at;
    if (bytes[at] === BACKSLASH) at += 1;
  }
  return null;
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** @returns the first name that comes again, escapes undone: `"na\u006de"` is `"name"` */
function repeatedName(bytes: Uint8Array, names: readonly Name[]): string {
  const texts = names.map(({ start, end }) =>
    JSON.parse(Buffer.from(bytes.subarray(start, end + 1)).toString()),
  );
  return texts.find((name, index) => texts.indexOf(name) < index) ?? "";
}

/** How much deeper a bracket or brace leads; 0 for any other character. */
function nesting(code: number): -1 | 0 | 1 {
  // "[" and "{" are 0x5b and 0x7b, their closing ones two further.
  const folded = code | 0x20;
  return folded === 0x7b ? 1 : folded === 0x7d ? -1 : 0;
}

function malformed(detail: string): Result<never> {
  return refuse("malformed-json", detail);
}
