import { formatEntityTag, parseEntityTag, type RowVersion } from "./entity-tag.ts";

/**
 * What a write expects of the stored version: exactly this one; nothing ("any", only while a rollout allows
 * a missing If-Match); or something that no stored version can equal ("unmatchable").
 */
export type Expected = RowVersion | "any" | "unmatchable";

/**
 * Takes spaces and tabs off both ends: the optional white space of RFC 9110, section 5.6.3. `String.trim()`
 * would take U+00A0 too and so accept a value that is not byte-equal.
 */
export function trimBlanks(text: string): string {
  let start = 0;
  let end = text.length;
  // Not /[ \t]+$/, which begins anew at every blank of a run: 64 KiB of them would hold the event loop for seconds.
  while (start < end && isBlank(text.charCodeAt(start))) start += 1;
  while (start < end && isBlank(text.charCodeAt(end - 1))) end -= 1;
  return text.slice(start, end);
}

function isBlank(charCode: number): boolean {
  return charCode === 0x20 || charCode === 0x09;
}

/** @returns the trimmed value, or null when the header is absent or blank. */
export function readIfMatch(header: string | null): string | null {
  const value = header === null ? "" : trimBlanks(header);
  return value === "" ? null : value;
}

/** A present If-Match as an expectation. Only a tag that this service could have sent can ever match. */
export function expectedVersion(ifMatch: string): Expected {
  return parseEntityTag(ifMatch) ?? "unmatchable";
}

export function matchesExpected(expected: Expected, current: RowVersion): boolean {
  if (expected === "any") return true;
  return expected === current;
}

// One member of a list of entity-tags (RFC 9110, sections 5.6.1 and 8.8.3); empty members are allowed. Blanks before a
// tag belong to the tag: two runs of them side by side would share n blanks in n ways.
const LISTED_TAG = /(?:[ \t]*(?:W\/)?("[^"]*"))?[ \t]*(?:,|$)/y;

/**
 * If-None-Match of a read (RFC 9110, section 13.1.2): a list or `*`, compared weakly; a blank one is absent, and so is
 * what is neither. The list is scanned, not split: an opaque tag may hold a comma.
 */
export function matchesIfNoneMatch(header: string | null, current: RowVersion): boolean {
  if (header === null) return false;
  const value = trimBlanks(header);
  if (value === "*") return true;
  const tag = formatEntityTag(current);
  let isFound = false;
  LISTED_TAG.lastIndex = 0;
  while (LISTED_TAG.lastIndex < value.length) {
    const member = LISTED_TAG.exec(value);
    if (member === null) return false;
    isFound ||= member[1] === tag;
  }
  return isFound;
}

/** How an If-Match that failed differs from the current entity-tag; what a client developer looks for. */
type Diagnosis = {
  readonly kind:
    | "weak"
    | "any"
    | "list"
    | "compression-suffix"
    | "unquoted"
    | "non-ascii"
    | "case-changed"
    | "trailing-bytes"
    | "not-an-entity-tag"
    | "stale";
  readonly explanation: string;
};

const EXPLANATION: Record<Diagnosis["kind"], string> = {
  weak: "If-Match is a weak entity-tag (W/). Writes need the strong one, as the service sent it. A compressing proxy between you and the service weakens tags: have it leave responses with `no-transform` alone, or read with `Accept-Encoding: identity`.",
  any: "If-Match is `*`, which names no version. Send the ETag of your last read.",
  list: "If-Match holds several values (a list, or several header lines). Send exactly one entity-tag: that of your last read.",
  "compression-suffix":
    "The tag carries a suffix that a compressing proxy or server module adds (such as -gzip). Turn that off, or read with `Accept-Encoding: identity`, and send the tag as the service made it.",
  unquoted:
    "The tag came without its double quotes, or with one of them, or with others. They are part of the value: send it exactly as received.",
  "non-ascii":
    "If-Match has bytes that are not ASCII; no entity-tag of this service has any. Send it exactly as received.",
  "case-changed":
    "The tag differs from the current one only in the case of letters. Entity-tags are case-sensitive: send it exactly as received.",
  "trailing-bytes":
    "If-Match holds the current tag with other bytes before or after it. Send the tag alone, exactly as received.",
  "not-an-entity-tag":
    "If-Match is not an entity-tag of this service. Send the ETag header of your last read exactly as received, quotes included.",
  stale:
    "The customer has changed since the version that you name. Read it again, decide whether your change still holds, and send it with the new entity-tag.",
};

/**
 * @param received the trimmed If-Match, known not to be the current entity-tag
 * @param current the version stored now
 */
export function diagnose(received: string, current: RowVersion): Diagnosis {
  const kind = diagnosisKind(received, formatEntityTag(current));
  return { kind, explanation: EXPLANATION[kind] };
}

function diagnosisKind(received: string, tag: string): Diagnosis["kind"] {
  const opaque = tag.slice(1, -1);
  if (parseEntityTag(received) !== null) {
    return received.toLowerCase() === tag.toLowerCase() ? "case-changed" : "stale";
  }
  if (received === "*") return "any";
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the range of ASCII is the point
  if (/[^\x00-\x7f]/.test(received)) return "non-ascii";
  if (/^(?:W\/)?"[^"]*"\s*,|,\s*(?:W\/)?"[^"]*"$|^,/.test(received)) return "list";
  if (/^w\/\s*"/i.test(received)) return "weak";
  if (/^"[^"]*[-;+:](?:gzip|br|deflate|zstd|df)"$|^"[^"]*"[-;+:]?(?:gzip|br|deflate|zstd)$/i.test(received)) {
    return "compression-suffix";
  }
  if (/^[A-Za-z0-9_-]{16}$/.test(received) || isRequoted(received, opaque)) return "unquoted";
  if (received.includes(opaque)) return "trailing-bytes";
  return "not-an-entity-tag";
}

const QUOTES = String.raw`(?:\\?["']|%22|&quot;)?[ \t]?`;

/** The current tag with its quotes lost on one side, escaped or replaced, as shells and templates do it. */
function isRequoted(received: string, opaque: string): boolean {
  return received.length < 64 && new RegExp(`^${QUOTES}${opaque}[ \t]?${QUOTES}$`, "i").test(received);
}
