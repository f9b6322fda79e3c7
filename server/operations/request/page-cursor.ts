import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";

const ALGORITHM = "aes-256-gcm";
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
/** A position is padded to the length of an id: the length of a cursor reveals nothing. */
const POSITION_BYTES = 36;
const CURSOR_BYTES = NONCE_BYTES + POSITION_BYTES + TAG_BYTES;

/** What a cursor is for: the kind of the list, its tenant and its filters. */
type PageFilter = readonly (string | null)[];

/**
 * Where the next page begins, encrypted. The policy may hide ids, and an id contains the time of creation:
 * a cursor with the plain id would show both to every caller who may list. The filter is authenticated with it, so
 * that a cursor of another tenant or filter is refused instead of starting somewhere else.
 *
 * @param position at most 36 characters, without a blank at its end
 * @param key 32 bytes, the same for every service on one database
 */
export function encryptCursor(key: Uint8Array, position: string, filter: PageFilter): string {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv(ALGORITHM, key, nonce).setAAD(filterBytes(filter));
  const text = position.padEnd(POSITION_BYTES);
  return Buffer.concat([nonce, cipher.update(text), cipher.final(), cipher.getAuthTag()]).toString(
    "base64url",
  );
}

/**
 * @returns the position after which the page begins, or null for
 *   what {@link encryptCursor} did not make for this filter
 */
export function decryptCursor(key: Uint8Array, cursor: string, filter: PageFilter): string | null {
  const bytes = Buffer.from(cursor, "base64url");
  // Decoding skips what is not base64url: only the text that was made is accepted.
  if (bytes.length !== CURSOR_BYTES || bytes.toString("base64url") !== cursor) return null;
  const decipher = createDecipheriv(ALGORITHM, key, bytes.subarray(0, NONCE_BYTES))
    .setAAD(filterBytes(filter))
    .setAuthTag(bytes.subarray(-TAG_BYTES));
  try {
    const encrypted = bytes.subarray(NONCE_BYTES, -TAG_BYTES);
    return (decipher.update(encrypted, undefined, "utf8") + decipher.final("utf8")).trimEnd();
  } catch {
    return null; // The tag does not fit.
  }
}

function filterBytes(filter: PageFilter): Buffer {
  return Buffer.from(JSON.stringify(filter));
}
