import { FormatRegistry, type TSchema, Type } from "@sinclair/typebox";

export const STATUSES = ["active", "suspended", "closed"] as const;
export type CustomerStatus = (typeof STATUSES)[number];

/**
 * The customer's fields, a row each. Projection, column, body schemas and policy follow from it.
 * `createdAt` is stored but not here: it can't be selected and never leaves through a body.
 */
export const FIELD_REGISTRY = {
  id: { inDefaultSet: true, schema: Type.String() },
  name: { inDefaultSet: true, schema: Type.String({ format: "customer-name" }) },
  email: { inDefaultSet: true, schema: Type.String({ format: "customer-email" }) },
  status: { inDefaultSet: false, schema: Type.Union(STATUSES.map((status) => Type.Literal(status))) },
} as const satisfies Record<string, { inDefaultSet: boolean; schema: TSchema }>;

export type FieldName = keyof typeof FIELD_REGISTRY;

/** In registry order, which is the order of every projection. A name is also the name of its column. */
export const FIELD_NAMES = Object.keys(FIELD_REGISTRY) as readonly FieldName[];

export function isFieldName(text: string): text is FieldName {
  return Object.hasOwn(FIELD_REGISTRY, text);
}

export function isStatus(text: string): text is CustomerStatus {
  return (STATUSES as readonly string[]).includes(text);
}

const NAME_CODE_POINTS_MAX = 200;
const EMAIL_CODE_POINTS_MIN = 3;
const EMAIL_CODE_POINTS_MAX = 254;

/** What is wrong with a text of a format, or null. The schemas above name these formats. */
export const FORMAT_FAULTS: Readonly<Record<string, (text: string) => string | null>> = {
  "customer-name": nameFault,
  "customer-email": emailFault,
};

for (const [format, fault] of Object.entries(FORMAT_FAULTS)) {
  FormatRegistry.Set(format, (text) => fault(text) === null);
}

/** Blanks around a name are allowed: they are not stored, and do not count. */
function nameFault(name: string): string | null {
  const fault = textFault(name);
  if (fault !== null) return fault;
  const length = codePoints(name.trim());
  if (length === 0) return "must not be empty";
  if (length > NAME_CODE_POINTS_MAX) {
    return `must have at most ${NAME_CODE_POINTS_MAX} characters; it has ${length}`;
  }
  return null;
}

/**
 * A plain check, since only a letter that arrives proves an address: one @ with something on both sides, and
 * none of the characters that would make it a list, a comment or a display name (RFC 5322, section 3.2.3).
 */
function emailFault(email: string): string | null {
  const fault = textFault(email);
  if (fault !== null) return fault;
  const length = codePoints(email);
  if (length < EMAIL_CODE_POINTS_MIN || length > EMAIL_CODE_POINTS_MAX) {
    return `must have ${EMAIL_CODE_POINTS_MIN} to ${EMAIL_CODE_POINTS_MAX} characters; it has ${length}`;
  }
  if (!/^[^\s@<>()[\],;:"\\]+@[^\s@<>()[\],;:"\\]+$/u.test(email)) {
    return "must be one address of the form local@domain, without blanks, brackets or a display name";
  }
  if (/@\.|\.$|\.\./.test(email)) return "must not have an empty label in its domain or two dots in a row";
  return null;
}

function textFault(text: string): string | null {
  if (!text.isWellFormed()) return "must be well-formed Unicode; it has a lone surrogate";
  if (/\p{Cc}/u.test(text)) return "must not have control characters";
  return null;
}

function codePoints(text: string): number {
  let count = 0;
  for (const _ of text) count += 1;
  return count;
}
