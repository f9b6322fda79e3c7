/**
 * A *row version* is what the store keeps: 12 random bytes, drawn anew at every accepted write. An
 * *entity-tag* is what HTTP sees: those bytes as base64url in double quotes (RFC 9110, section 8.8.3).
 *
 * Random rather than counted: a version is never used again for another state, not after delete and
 * re-create, not after restoring a backup, not across replicas; and it tells nothing of the data.
 */
export type RowVersion = Uint8Array;

const ROW_VERSION_BYTES = 12;

export function drawRowVersion(): RowVersion {
  return crypto.getRandomValues(new Uint8Array(ROW_VERSION_BYTES));
}

/** @returns the strong entity-tag, quotes included: 18 characters. */
export function formatEntityTag(version: RowVersion): string {
  return `"${version.toBase64({ alphabet: "base64url", omitPadding: true })}"`;
}

// 16 base64url characters are exactly 12 bytes with no spare bits, so text and bytes map one to one:
// comparing the bytes is comparing the tags byte for byte.
const ENTITY_TAG = /^"([A-Za-z0-9_-]{16})"$/;

/** @returns the row version of an entity-tag that {@link formatEntityTag} could have made, else null. */
export function parseEntityTag(text: string): RowVersion | null {
  const encoded = ENTITY_TAG.exec(text)?.[1];
  return encoded === undefined ? null : new Uint8Array(Buffer.from(encoded, "base64url"));
}

export function sameRowVersion(a: RowVersion, b: RowVersion): boolean {
  return Buffer.compare(a, b) === 0;
}
