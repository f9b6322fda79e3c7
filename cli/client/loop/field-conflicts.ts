/** What someone else did to the fields that we want to write. Pure. */

import { memberNamed } from "../customer.ts";
import { type Json, type JsonObject, jsonEquals } from "../json.ts";

/** Field names as the operator wrote them; null removes a member (RFC 7396). */
export type Change = ReadonlyMap<string, Json>;

/** A field whose value is not what either side began with; undefined is an absent member. */
export type FieldConflict = {
  field: string;
  base: Json | undefined;
  theirs: Json | undefined;
  mine: Json | undefined;
};

/**
 * The named fields that are no longer as in `base` and not yet as wanted. An empty list: the change can be
 * applied to `theirs` without undoing anybody's.
 */
export function conflictingFields(base: JsonObject, theirs: JsonObject, change: Change): FieldConflict[] {
  const conflicts: FieldConflict[] = [];
  for (const [field, mine] of change) {
    const before = memberNamed(base, field)?.value;
    const now = memberNamed(theirs, field)?.value;
    if (!sameValue(before, now) && !isReached(before, now, mine))
      conflicts.push({ field, base: before, theirs: now, mine });
  }
  return conflicts;
}

/** Any member that differs, for a deletion: it concerns all of them. */
export function differingFields(base: JsonObject, theirs: JsonObject): FieldConflict[] {
  return [...new Set([...base.keys(), ...theirs.keys()])]
    .filter((field) => !sameValue(base.get(field), theirs.get(field)))
    .map((field) => ({ field, base: base.get(field), theirs: theirs.get(field), mine: undefined }));
}

/** True where nothing would change. */
export function hasValues(value: JsonObject, change: Change): boolean {
  return everyField(change, value, sameValue);
}

/**
 * True where every field has become as wanted since `base`. A server may store text in another case or Unicode
 * form, or without the blanks around it, and our own write must not pass for somebody else's.
 */
export function hasReached(base: JsonObject, value: JsonObject, change: Change): boolean {
  return everyField(change, value, (now, wanted, field) =>
    isReached(memberNamed(base, field)?.value, now, wanted),
  );
}

/** Where `before` differs from the wish by no more than that, it is no sign of our write. */
function isReached(before: Json | undefined, now: Json | undefined, wanted: Json): boolean {
  return sameValue(now, wanted) || (isLike(now, wanted) && !isLike(before, wanted));
}

/** True where the state is what our write makes of it: a server may store text without the blanks around it. */
export function looksWritten(value: JsonObject, change: Change): boolean {
  return everyField(change, value, (now, wanted) => sameValue(plain(now), plain(wanted)));
}

/**
 * True where no text that was sent is shown as another text: a server may show a part of what it wrote, and
 * store addresses in lower case.
 */
export function showsNoOtherText(shown: JsonObject, sent: JsonObject): boolean {
  return everyField(
    sent,
    shown,
    (now, wanted) => typeof now !== "string" || typeof wanted !== "string" || isLike(now, wanted),
  );
}

function everyField(
  change: Change,
  value: JsonObject,
  holds: (now: Json | undefined, wanted: Json, field: string) => boolean,
): boolean {
  return [...change].every(([field, wanted]) => holds(memberNamed(value, field)?.value, wanted, field));
}

/** The same value; of text, case, blanks around it and its Unicode form make no difference. */
function isLike(one: Json | undefined, other: Json | undefined): boolean {
  return sameValue(inLowerCase(plain(one)), inLowerCase(plain(other)));
}

function inLowerCase(value: Json | undefined): Json | undefined {
  return typeof value === "string" ? value.toLowerCase() : value;
}

/** Text without the blanks around it, in one Unicode form; any other value as it is. */
function plain(value: Json | undefined): Json | undefined {
  return typeof value === "string" ? value.trim().normalize() : value;
}

/** Removing a member and setting it to null are the same wish. */
function sameValue(a: Json | undefined, b: Json | undefined): boolean {
  return jsonEquals(a ?? null, b ?? null);
}
