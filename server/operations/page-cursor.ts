import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";
import type { PageQuery } from "../storage/customer-store.ts";

const ALGORITHM = "aes-256-gcm";
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

type PageFilter = Pick<PageQuery, "tenant" | "status" | "email">;

/**
 * Where the next page begins, sealed: a caller who may not read ids does not get one in a cursor, and a
 * cursor that was changed, or made for another tenant or another filter, does not open.
 *
 * @param key 32 bytes
 */
export function sealCursor(key: Uint8Array, lastId: string, filter: PageFilter): string {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv(ALGORITHM, key, nonce).setAAD(filterBytes(filter));
  const sealed = Buffer.concat([cipher.update(lastId.replaceAll("-", ""), "hex"), cipher.final()]);
  return Buffer.concat([nonce, sealed, cipher.getAuthTag()]).toString("base64url");
}

/** @returns the id after which the page begins, or null for what {@link sealCursor} did not make for this filter */
export function openCursor(key: Uint8Array, cursor: string, filter: PageFilter): string | null {
  const bytes = Buffer.from(cursor, "base64url");
  if (bytes.length !== NONCE_BYTES + 16 + TAG_BYTES || bytes.toString("base64url") !== cursor) return null;
  try {
    const decipher = createDecipheriv(ALGORITHM, key, bytes.subarray(0, NONCE_BYTES))
      .setAAD(filterBytes(filter))
      .setAuthTag(bytes.subarray(-TAG_BYTES));
    const opened = Buffer.concat([
      decipher.update(bytes.subarray(NONCE_BYTES, -TAG_BYTES)),
      decipher.final(),
    ]);
    const hex = opened.toString("hex");
    return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
  } catch {
    return null; // The seal does not fit.
  }
}

function filterBytes({ tenant, status, email }: PageFilter): Buffer {
  return Buffer.from(JSON.stringify([tenant, status, email]));
}
