import type { ChangedValues } from "../customer/change.ts";

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

/** The row of the audit trail that values belong to, for the message of {@link DamagedValues}. */
type RowOfValues = {
  readonly tenant: string;
  readonly customerId: string;
  /** Left out where the row has no place in its chain, or was not read. */
  readonly number?: number;
};

/** Kept values that this service never wrote: another program changed them, or the database is damaged. */
export class DamagedValues extends Error {
  override readonly name = "DamagedValues";

  constructor({ tenant, customerId, number }: RowOfValues) {
    const row = number === undefined ? "a row" : `row ${number}`;
    super(
      `The values that the audit trail of ${tenant} keeps beside ${row}, of customer ${customerId}, are damaged. Run \`customers-server audit verify\`, and compare the database with a backup.`,
    );
  }
}

/** @throws DamagedValues */
export function changedValues({ content }: Pick<KeptValues, "content">, row: RowOfValues): ChangedValues {
  let read: unknown;
  try {
    read = JSON.parse(content);
  } catch {
    throw new DamagedValues(row);
  }
  if (!isChangedValues(read)) throw new DamagedValues(row);
  return read;
}

function isChangedValues(read: unknown): read is ChangedValues {
  if (typeof read !== "object" || read === null || Array.isArray(read)) return false;
  return Object.values(read).every((value: unknown) => {
    const { before, after } = (value ?? {}) as { readonly before?: unknown; readonly after?: unknown };
    return (before === null || typeof before === "string") && typeof after === "string";
  });
}
