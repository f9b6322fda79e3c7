import { formatEntityTag, NO_VERSION, parseEntityTag, type RowVersion } from "./entity-tag.ts";

/**
 * Takes spaces and tabs off both ends: the optional white space of RFC 9110, section 5.6.3. `String.trim()`
 * would take U+00A0 too and so accept a value that is not byte-equal.
 */
export function trimBlanks(text: string): string {
  let start = 0;
  let end = text.length;
  // Not /[ \t]+$/, which starts again at every blank of a run:
  // 64 KiB of them would hold the event loop for seconds.
  while (start < end && isBlank(text.charCodeAt(start))) start += 1;
  while (start < end && isBlank(text.charCodeAt(end - 1))) end -= 1;
  return text.slice(start, end);
}

function isBlank(charCode: number): boolean {
  return charCode === 0x20 || charCode === 0x09;
}

/** The preconditions of a request, trimmed; null where the header is absent or blank. */
export type Preconditions = { readonly ifMatch: string | null; readonly ifNoneMatch: string | null };

export function readPreconditions(headers: Pick<Headers, "get">): Preconditions {
  return {
    ifMatch: trimmedOrNull(headers.get("if-match")),
    ifNoneMatch: trimmedOrNull(headers.get("if-none-match")),
  };
}

function trimmedOrNull(header: string | null): string | null {
  const value = header === null ? "" : trimBlanks(header);
  return value === "" ? null : value;
}

type PreconditionHeader = "If-Match" | "If-None-Match";

/**
 * Evaluates the preconditions in the order of RFC 9110, section 13.2.2: If-Match by
 * byte-equality with the strong entity-tag, then If-None-Match by weak comparison.
 *
 * @returns the header that fails against this version, or null
 */
export function failedPrecondition(
  { ifMatch, ifNoneMatch }: Preconditions,
  current: RowVersion,
): PreconditionHeader | null {
  if (ifMatch !== null && ifMatch !== formatEntityTag(current)) return "If-Match";
  const excluded = listedVersions(ifNoneMatch);
  return excluded === "any" || excluded.includes(current) ? "If-None-Match" : null;
}

/** The versions under which the store may apply a write: exactly this one, or any but these. */
export type ExpectedVersion = RowVersion | { readonly anyExcept: readonly RowVersion[] };

export function isExpected(expected: ExpectedVersion, rowVersion: RowVersion): boolean {
  return typeof expected === "string" ? rowVersion === expected : !expected.anyExcept.includes(rowVersion);
}

/** The same preconditions as a value that the store compares in the statement that writes. */
export function expectedVersion({ ifMatch, ifNoneMatch }: Preconditions): ExpectedVersion {
  const excluded = listedVersions(ifNoneMatch);
  if (excluded === "any") return NO_VERSION;
  if (ifMatch === null) return { anyExcept: excluded };
  const version = parseEntityTag(ifMatch);
  return version === null || excluded.includes(version) ? NO_VERSION : version;
}

// One member of a list of entity-tags (RFC 9110, sections 5.6.1 and 8.8.3); empty members are allowed.
// Blanks before a tag belong to the tag: two runs of them side by side would share n blanks in n ways.
const LISTED_TAG = /(?:[ \t]*(?:W\/)?("[^"]*"))?[ \t]*(?:,|$)/y;

/**
 * If-None-Match (RFC 9110, section 13.1.2): `*`, or a list that is compared weakly. A value that
 * is neither counts as absent. The list is scanned, not split: an opaque tag may hold a comma.
 *
 * @returns the versions of the listed tags that this service could have sent
 */
function listedVersions(ifNoneMatch: string | null): "any" | readonly RowVersion[] {
  if (ifNoneMatch === null) return [];
  if (ifNoneMatch === "*") return "any";
  const versions: RowVersion[] = [];
  LISTED_TAG.lastIndex = 0;
  while (LISTED_TAG.lastIndex < ifNoneMatch.length) {
    const member = LISTED_TAG.exec(ifNoneMatch);
    if (member === null) return [];
    const version = parseEntityTag(member[1] ?? "");
    if (version !== null) versions.push(version);
  }
  return versions;
}

/** Why a precondition failed; a client developer looks here first. */
export type Diagnosis = keyof typeof EXPLANATIONS;

/** What happened, to which header, and what to do next. */
export const EXPLANATIONS = {
  weak: "If-Match holds a weak entity-tag (W/). Writes need the strong one, exactly as the service sent it. A compressing proxy weakens tags: configure it to leave responses with `no-transform` unchanged, or read with `Accept-Encoding: identity`.",
  any: "If-Match is `*`, which names no version. Send the ETag of your last read.",
  list: "If-Match holds more than one value (a list, or several header lines). Send exactly one entity-tag: the ETag of your last read.",
  "compression-suffix":
    "The entity-tag in If-Match ends in a suffix that a compressing proxy or server module adds, such as -gzip. Turn the suffix off, or read with `Accept-Encoding: identity`, and send the tag as the service sent it.",
  unquoted:
    "The entity-tag in If-Match has lost a double quote, or has other quotes. The quotes are part of the value. Send it exactly as received.",
  "non-ascii":
    "If-Match contains bytes that are not ASCII, and no entity-tag of this service does. Send the tag exactly as received.",
  "case-changed":
    "The entity-tag in If-Match differs from the current one only in upper and lower case. Entity-tags are case-sensitive. Send it exactly as received.",
  "trailing-bytes":
    "If-Match holds the current entity-tag with other bytes before or after it. Send the tag alone, exactly as received.",
  "not-an-entity-tag":
    "If-Match is not an entity-tag of this service. Send the ETag header of your last read exactly as received, quotes included.",
  stale:
    "The customer has changed since the version that If-Match names. Read it again, decide whether your change is still right, and send it with the new entity-tag.",
  "already-stored":
    "The customer has changed since the version that If-Match names, but it already holds the values that you sent. An earlier attempt may have been applied and its answer lost. Read the customer to make sure. With an Idempotency-Key a write can be repeated safely.",
  "none-match":
    "If-None-Match is `*` or names the current entity-tag, and the customer exists in that version. Leave the header out of writes: If-Match alone protects them.",
} as const;

export const DIAGNOSES = Object.keys(EXPLANATIONS) as readonly Diagnosis[];

/**
 * @param preconditions of which one fails
 * @param current the version stored now
 */
export function diagnose(preconditions: Preconditions, current: RowVersion): Diagnosis {
  const { ifMatch } = preconditions;
  return ifMatch !== null && failedPrecondition(preconditions, current) === "If-Match"
    ? diagnoseIfMatch(ifMatch, formatEntityTag(current))
    : "none-match";
}

function diagnoseIfMatch(received: string, tag: string): Diagnosis {
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
