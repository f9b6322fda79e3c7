import { FormatRegistry, type TSchema, Type } from "@sinclair/typebox";

export const STATUSES = ["active", "suspended", "closed"] as const;
export type CustomerStatus = (typeof STATUSES)[number];

/**
 * The customer's fields, one row each. Projections, and the names in policies, scopes and the OpenAPI document, follow from it;
 * body schemas and the columns of each engine are written out (CONTRIBUTING.md has the list). `createdAt` is stored
 * but not listed here: it cannot be selected and never appears in a body.
 */
export const FIELD_REGISTRY = {
  id: { inDefaultSet: true, schema: Type.String() },
  name: { inDefaultSet: true, schema: Type.String({ format: "customer-name" }) },
  email: { inDefaultSet: true, schema: Type.String({ format: "customer-email" }) },
  status: {
    inDefaultSet: false,
    schema: Type.Union(
      STATUSES.map((status) => Type.Literal(status)),
      { fault: `must be one of ${STATUSES.join(", ")}` },
    ),
  },
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

/**
 * A name is stored exactly as sent: an entity-tag may be returned only
 * for content that was not transformed (RFC 9110, section 9.3.4).
 */
function nameFault(name: string): string | null {
  if (isMuchLonger(name, NAME_CODE_POINTS_MAX)) {
    return `must have at most ${NAME_CODE_POINTS_MAX} characters; it has more than ${MUCH_LONGER * NAME_CODE_POINTS_MAX}`;
  }
  const fault = textFault(name);
  if (fault !== null) return fault;
  if (INVISIBLE.test(name)) return "must not be blank";
  const length = codePoints(name);
  if (length <= NAME_CODE_POINTS_MAX) return null;
  return `must have at most ${NAME_CODE_POINTS_MAX} characters; it has ${length}`;
}

// U+2800 is the empty Braille pattern, which is a symbol to Unicode.
const INVISIBLE = /^[\p{White_Space}\p{Default_Ignorable_Code_Point}\u2800]*$/u;

/**
 * Of a local part, in octets (RFC 5321, section 4.5.3.1.1),
 * and of a label in a domain (RFC 1035, section 2.3.4).
 */
const LOCAL_PART_OCTETS_MAX = 64;
const LABEL_OCTETS_MAX = 63;

/**
 * Whether mail can be addressed so: a dot-atom (RFC 5322, section 3.2.3, with the letters of RFC 6531), an
 * @, and a host name (RFC 1123, section 2.1, with the letters of RFC 5890). Whether the address exists only
 * a letter can prove. Not taken: quoted local parts, address literals, comments, display names and lists.
 */
function emailFault(email: string): string | null {
  if (isMuchLonger(email, EMAIL_CODE_POINTS_MAX)) {
    return `must have ${EMAIL_CODE_POINTS_MIN} to ${EMAIL_CODE_POINTS_MAX} characters; it has more than ${MUCH_LONGER * EMAIL_CODE_POINTS_MAX}`;
  }
  const fault = textFault(email);
  if (fault !== null) return fault;
  const length = codePoints(email);
  if (length < EMAIL_CODE_POINTS_MIN || length > EMAIL_CODE_POINTS_MAX) {
    return `must have ${EMAIL_CODE_POINTS_MIN} to ${EMAIL_CODE_POINTS_MAX} characters; it has ${length}`;
  }
  const [local = "", domain = ""] = ONE_ADDRESS.exec(email)?.slice(1) ?? [];
  if (local === "") {
    return "must be one address of the form local@domain, without spaces, quotes, brackets or a display name";
  }
  if (local.split(".").includes(""))
    return "must not have a dot at either end of its local part, or two in a row";
  if (Buffer.byteLength(local) > LOCAL_PART_OCTETS_MAX) {
    return `must have at most ${LOCAL_PART_OCTETS_MAX} bytes before the @`;
  }
  const labels = domain.split(".");
  if (labels.includes("")) return "must not have an empty label in its domain";
  const isHostName = labels.every(
    (label) => LABEL.test(label) && Buffer.byteLength(label) <= LABEL_OCTETS_MAX,
  );
  // RFC 3696, section 2: a top-level domain is not all digits, so 192.0.2.1 is no host name.
  if (!isHostName || /^[0-9]+$/.test(labels.at(-1) ?? "")) {
    return "must have a host name after the @: letters, digits, and hyphens inside a label of at most 63 bytes";
  }
  return null;
}

const ONE_ADDRESS = /^([^\s@<>()[\],;:"\\]+)@([^\s@<>()[\],;:"\\]+)$/u;
// Zero-width joiners stand inside words of some scripts (RFC 5892, appendix A).
const LABEL = /^[\p{L}\p{M}\p{N}](?:(?:[\p{L}\p{M}\p{N}-]|\u200c|\u200d)*[\p{L}\p{M}\p{N}])?$/u;

function textFault(text: string): string | null {
  if (!text.isWellFormed()) return "must be well-formed Unicode; it has a lone surrogate";
  if (/[\p{Cc}\p{Zl}\p{Zp}]/u.test(text)) return "must not have control characters or line separators";
  // They reorder what stands around them, in logs and tables too (Unicode Technical Report 36, section 2.5).
  if (/\p{Bidi_Control}/u.test(text)) return "must not have bidirectional control characters";
  return null;
}

const MUCH_LONGER = 4;

/** Decided by the length alone: the other checks of 64 KiB take 0.1 ms each time, and are made three times. */
function isMuchLonger(text: string, codePointsMax: number): boolean {
  // A code point has at most two units.
  return text.length > 2 * MUCH_LONGER * codePointsMax;
}

function codePoints(text: string): number {
  let count = 0;
  for (const _ of text) count += 1;
  return count;
}
