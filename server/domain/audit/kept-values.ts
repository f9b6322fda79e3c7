import type { ChangedValues } from "../change.ts";

/**
 * Values as a store keeps them beside their row of the audit trail. The row has only their digest, so that
 * they can be erased and the hash chain stays whole.
 */
export type KeptValues = {
  /** Hexadecimal, drawn for each row. It is erased with the values: without it nobody can guess them by the digest. */
  readonly salt: string;
  /** {@link ChangedValues} as JSON, in the very form of which the digest was taken. */
  readonly content: string;
};

const SALT_BYTES = 16;

export function drawSalt(): string {
  return crypto.getRandomValues(new Uint8Array(SALT_BYTES)).toHex();
}

/** SHA-256 over the salt and the content in UTF-8, hexadecimal. */
export function valuesDigest({ salt, content }: KeptValues): string {
  return new Bun.CryptoHasher("sha256").update(Uint8Array.fromHex(salt)).update(content).digest("hex");
}

export function changedValues({ content }: KeptValues): ChangedValues {
  return JSON.parse(content) as ChangedValues;
}
