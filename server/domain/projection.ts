import { FIELD_NAMES, FIELD_REGISTRY, type FieldName, isFieldName } from "./customer/field-registry.ts";
import { trimBlanks } from "./precondition.ts";
import { ok, type Result, refuse } from "./problem.ts";
import { nearest } from "./text/nearest.ts";

/** Which fields an answer shows, in registry order. */
export type Projection =
  /** The request names no fields: the registry's default set, less what the policy hides. */
  | { readonly kind: "default"; readonly fields: readonly FieldName[] }
  /** The request names them. */
  | { readonly kind: "named"; readonly fields: readonly FieldName[] }
  /** The answer has no body, so nothing is read back. */
  | { readonly kind: "none"; readonly fields: readonly [] };

export const NO_BODY: Projection = { kind: "none", fields: [] };

/** The most names in one `fields`, before repeats collapse. */
export const FIELDS_MAX = 16;

export function projectionOf(names: readonly FieldName[]): Projection {
  return { kind: "named", fields: FIELD_NAMES.filter((name) => names.includes(name)) };
}

/** The projection of a request without `fields`, for a caller who may read these fields. */
export function defaultProjection(readable: ReadonlySet<FieldName>): Projection {
  return { kind: "default", fields: DEFAULT_FIELDS.filter((name) => readable.has(name)) };
}

const DEFAULT_FIELDS = FIELD_NAMES.filter((name) => FIELD_REGISTRY[name].inDefaultSet);

/** Whether the policy hides a field of the default set from this caller. */
export function hidesDefaultField({ kind, fields }: Projection): boolean {
  return kind === "default" && fields.length < DEFAULT_FIELDS.length;
}

/**
 * Reads `fields`: comma-separated registry names in any case;
 * blanks around them are ignored, and repeats collapse.
 *
 * @param lists the values of the parameter; a repeated one is joined
 * @param readable what the caller may read: only such names are suggested
 * @returns the projection, which may still hold fields that the caller may not read;
 *   or `empty-fields`, `unknown-field`, `too-many-fields`
 */
export function parseFields(lists: readonly string[], readable: ReadonlySet<FieldName>): Result<Projection> {
  const names = lists.flatMap((list) => list.split(",")).map((name) => trimBlanks(name));
  if (names.includes("")) {
    return refuse(
      "empty-fields",
      "`fields` has an empty element. Leave `fields` out for the default set, or name at least one field.",
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

const SHOWN_NAMES_MAX = 16;
const SHOWN_CHARACTERS_MAX = 64;

function refuseUnknown(unknown: readonly string[], readable: ReadonlySet<FieldName>): Result<never> {
  const selectable = FIELD_NAMES.filter((name) => readable.has(name));
  // A problem document repeats only the beginning of what a client sent.
  const shown = [...new Set(unknown)]
    .slice(0, SHOWN_NAMES_MAX)
    .map((name) => name.slice(0, SHOWN_CHARACTERS_MAX).toWellFormed());
  const near = [...new Set(shown.flatMap((name) => nearest(name.toLowerCase(), selectable) ?? []))];
  return refuse(
    "unknown-field",
    `\`fields\` names unknown fields: ${shown.join(", ")}. Choose from ${selectable.join(", ") || "none"}.`,
    {
      extensions: {
        unknownFields: shown,
        selectableFields: selectable,
        ...(near.length > 0 ? { didYouMean: near } : {}),
      },
    },
  );
}
