import type { AuditEntry } from "./audit-entry.ts";
import { valuesDigest } from "./kept-values.ts";

/** A place in a tenant's chain, and the hash there: it covers every row up to this one. */
export type ChainLink = {
  /** From 1, without gaps; 0 before the first row. */
  readonly number: number;
  /** SHA-256, hexadecimal. */
  readonly hash: string;
};

/** A row of the trail in its place. */
export type ChainedEntry = AuditEntry & ChainLink;

/** What the first row of a tenant follows. */
export const CHAIN_START: ChainLink = { number: 0, hash: "0".repeat(64) };

/**
 * The values are covered by their digest alone, which stays when they are erased.
 *
 * @returns the link of a row that follows another one: each hash covers the row and the hash before it
 */
export function linkAfter(previous: ChainLink, entry: Omit<AuditEntry, "values">): ChainLink {
  const number = previous.number + 1;
  // An array: its text has one form, whatever the order in which an object's members were set.
  const content = JSON.stringify([
    previous.hash,
    number,
    entry.tenant,
    entry.customerId,
    entry.timeMs,
    entry.client,
    entry.tokenPrefix,
    entry.requestId,
    entry.operation,
    entry.versionBefore,
    entry.versionAfter,
    entry.changed.join(),
    entry.isWithoutIfMatch,
    entry.hasKey,
    entry.valuesDigest,
  ]);
  return { number, hash: Bun.SHA256.hash(content, "hex") };
}

/** @returns what is wrong with a row that should follow another one, as a sentence; null where it does */
export function chainFault(previous: ChainLink, row: ChainedEntry): string | null {
  const next = previous.number + 1;
  if (row.number < next) return `row ${row.number} is there, though the chain begins with row ${next}`;
  if (row.number > next) {
    const last = row.number - 1;
    return last === next ? `row ${next} is missing` : `rows ${next} to ${last} are missing`;
  }
  if (linkAfter(previous, row).hash !== row.hash) return changed(row);
  if (row.values === null || valuesDigest(row.values) === row.valuesDigest) return null;
  return `row ${row.number} does not have the digest of the values that are kept beside it: they were changed`;
}

function changed(row: ChainLink): string {
  return `row ${row.number} does not have the hash of its content and of the row before it: one of the two was changed`;
}
