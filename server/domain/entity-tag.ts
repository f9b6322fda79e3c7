declare const isRowVersion: unique symbol;

/**
 * A *row version* is what the store keeps: 96 random bits as 16 base64url characters, drawn anew at every
 * accepted write. An *entity-tag* is what HTTP sees: that text in double quotes (RFC 9110, section 8.8.3).
 *
 * Random rather than counted: a version is never used again for another state, not after delete and
 * re-create, not after restoring a backup, not across replicas; and it tells nothing of the data.
 *
 * Text rather than bytes: every read would make an array of them and encode it.
 */
export type RowVersion = string & { readonly [isRowVersion]: true };

const ROW_VERSION_BYTES = 12;

export function drawRowVersion(): RowVersion {
  const bytes = crypto.getRandomValues(new Uint8Array(ROW_VERSION_BYTES));
  return bytes.toBase64({ alphabet: "base64url", omitPadding: true }) as RowVersion;
}

/** @returns the strong entity-tag, quotes included: 18 characters. */
export function formatEntityTag(version: RowVersion): string {
  return `"${version}"`;
}

const ENTITY_TAG = /^"([A-Za-z0-9_-]{16})"$/;

/** @returns the row version of an entity-tag that {@link formatEntityTag} could have made, else null. */
export function parseEntityTag(text: string): RowVersion | null {
  return (ENTITY_TAG.exec(text)?.[1] ?? null) as RowVersion | null;
}
