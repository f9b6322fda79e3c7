declare const isRowVersion: unique symbol;

/**
 * A *row version* is what the store keeps: 96 random bits as 16 base64url characters, drawn anew at every
 * accepted write. An *entity-tag* is what HTTP sees: that text in double quotes (RFC 9110, section 8.8.3).
 *
 * Random rather than counted: a version never names two states, not after a delete and a new
 * create, not after a restored backup, not across replicas; and it reveals nothing about the data.
 *
 * Text rather than bytes: with bytes every read would allocate an array and encode it.
 */
export type RowVersion = string & { readonly [isRowVersion]: true };

const ROW_VERSION_BYTES = 12;

/** Equals no stored version: what a write expects whose preconditions no version can meet. */
export const NO_VERSION = "" as RowVersion;

export function drawRowVersion(): RowVersion {
  const bytes = crypto.getRandomValues(new Uint8Array(ROW_VERSION_BYTES));
  return bytes.toBase64({ alphabet: "base64url", omitPadding: true }) as RowVersion;
}

/** @returns the strong entity-tag, quotes included: 18 characters. */
export function formatEntityTag(version: RowVersion): string {
  return `"${version}"`;
}

const ENTITY_TAG = /^"([A-Za-z0-9_-]{16})"$/;

/** @returns the row version of an entity-tag of the form that {@link formatEntityTag} makes, else null. */
export function parseEntityTag(text: string): RowVersion | null {
  return (ENTITY_TAG.exec(text)?.[1] ?? null) as RowVersion | null;
}
