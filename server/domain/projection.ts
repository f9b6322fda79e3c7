import { FIELD_NAMES, FIELD_REGISTRY, type FieldName, isFieldName } from "./field-registry.ts";
import { nearest } from "./nearest.ts";
import { trimBlanks } from "./precondition.ts";
import { ok, type Result, refuse } from "./problem.ts";

/**
 * A set of fields in registry order. Equal sets are the same object, so a projection can key a map: there are
 * only 2^4 of them.
 */
export type Projection = readonly FieldName[];

/** The most names in one `fields`, before repeats collapse. */
export const FIELDS_MAX = 16;

const INTERNED = new Map<number, Projection>();

export function projectionOf(fields: Iterable<FieldName>): Projection {
  let mask = 0;
  for (const field of fields) mask |= 1 << FIELD_NAMES.indexOf(field);
  let projection = INTERNED.get(mask);
  if (projection === undefined) {
    projection = Object.freeze(FIELD_NAMES.filter((_, index) => (mask & (1 << index)) !== 0));
    INTERNED.set(mask, projection);
  }
  return projection;
}

/** The set of a request without `fields`, for a caller who may read these: the registry's default, less what is hidden. */
export function defaultProjection(readable: ReadonlySet<FieldName>): Projection {
  return projectionOf(FIELD_NAMES.filter((name) => FIELD_REGISTRY[name].inDefaultSet && readable.has(name)));
}

/**
 * Reads `fields`: comma-separated registry names, blanks around them ignored, case-insensitive, repeats collapse.
 *
 * @param lists the values of the parameter; a repeated one is joined
 * @param readable what the caller may read: only such names are suggested
 * @returns the projection, which may still hold fields that the caller may not read ({@link forbiddenFields});
 *   or `empty-fields`, `unknown-field`, `too-many-fields`
 */
export function parseFields(lists: readonly string[], readable: ReadonlySet<FieldName>): Result<Projection> {
  const names = lists.flatMap((list) => list.split(",")).map((name) => trimBlanks(name));
  if (names.includes("")) {
    return refuse(
      "empty-fields",
      "`fields` has an empty element. Leave `fields` out for the default set, or name each field once.",
    );
  }
  const lowered = names.map((name) => name.toLowerCase());
  const unknown = names.filter((_, index) => !isFieldName(lowered[index] ?? ""));
  if (unknown.length > 0) return refuseUnknown(unknown, readable);
  if (names.length > FIELDS_MAX) {
    return refuse(
      "too-many-fields",
      `\`fields\` has ${names.length} names; at most ${FIELDS_MAX} are allowed. Name each field once.`,
      { extensions: { maxFields: FIELDS_MAX } },
    );
  }
  return ok(projectionOf(lowered.filter(isFieldName)));
}

/** @returns the fields of a projection that are not in the readable set, in registry order. */
export function forbiddenFields(
  projection: Projection,
  readable: ReadonlySet<FieldName>,
): readonly FieldName[] {
  return projection.filter((name) => !readable.has(name));
}

const SHOWN_NAMES_MAX = 16;
const SHOWN_CHARACTERS_MAX = 64;

function refuseUnknown(unknown: readonly string[], readable: ReadonlySet<FieldName>): Result<never> {
  const selectable = FIELD_NAMES.filter((name) => readable.has(name));
  // What a client sent comes back in part only: a problem document is not an echo service.
  const shown = [...new Set(unknown)]
    .slice(0, SHOWN_NAMES_MAX)
    .map((name) => name.slice(0, SHOWN_CHARACTERS_MAX).toWellFormed());
  const near = [...new Set(shown.flatMap((name) => nearest(name.toLowerCase(), selectable) ?? []))];
  return refuse(
    "unknown-field",
    `\`fields\` names what is not a field: ${shown.join(", ")}. Choose from ${selectable.join(", ") || "none"}.`,
    {
      extensions: {
        unknownFields: shown,
        selectableFields: selectable,
        ...(near.length > 0 ? { didYouMean: near } : {}),
      },
    },
  );
}
