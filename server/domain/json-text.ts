import { ok, type Result, refuse } from "./problem.ts";

const DECODER = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/**
 * One JSON text in UTF-8 (RFC 8259, section 8.1), strictly: no byte order mark, no member named twice at the
 * top (which of the two counts is left open, section 4, so neither may). Deeper ones can't matter: no body of
 * this service has an object inside.
 */
export function parseJsonText(bytes: Uint8Array): Result<unknown> {
  if (bytes.length === 0) return malformed("The body is empty; a JSON object is needed.");
  let text: string;
  try {
    text = DECODER.decode(bytes);
  } catch {
    return malformed("The body is not UTF-8.");
  }
  if (text.startsWith("\ufeff")) return malformed("The body begins with a byte order mark; leave it out.");
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    return malformed(
      error instanceof RangeError ? "The body is nested too deeply." : "The body is not one JSON text.",
    );
  }
  const repeated = repeatedMember(text);
  if (repeated !== null) {
    return malformed(`The body names the member \`${repeated.slice(0, 64).toWellFormed()}\` twice.`);
  }
  return ok(value);
}

/**
 * @param text valid JSON
 * @returns a name that its top-level object has twice, escapes undone (`"na\u006de"` is `"name"`), or null
 */
function repeatedMember(text: string): string | null {
  const seen = new Set<string>();
  let depth = 0;
  let lastString = "";
  for (const [token] of text.matchAll(/"[^"\\]*(?:\\.[^"\\]*)*"|[{}[\]:]/g)) {
    if (token === "{" || token === "[") depth += 1;
    else if (token === "}" || token === "]") depth -= 1;
    else if (token !== ":") lastString = token;
    else if (depth === 1) {
      const name = JSON.parse(lastString) as string;
      if (seen.has(name)) return name;
      seen.add(name);
    }
  }
  return null;
}

function malformed(detail: string): Result<never> {
  return refuse("malformed-json", detail);
}
