import type { RowVersion } from "../../../domain/entity-tag.ts";
import { type ExpectedVersion, isExpected } from "../../../domain/precondition.ts";

/** What is stored, and what is kept under the key, after a write was not applied. */
export type Seen = {
  /** Null: no such row. */
  readonly row_version: RowVersion | null;
  /** JSON; null without a key that holds. */
  readonly outcome: string | null;
  /** JSON; null where the outcome has no fields, or their customer was deleted. */
  readonly fields: string | null;
  readonly is_same_request: boolean | null;
};

export type Judged = {
  readonly expected: ExpectedVersion;
  /** The version that the write would have stored; null for a removal. */
  readonly next: RowVersion | null;
  readonly isKeyed: boolean;
  /** Whether the answer to an earlier try was lost. */
  readonly wasUnknown: boolean;
};

export type Verdict =
  /** An earlier request under this key was accepted: this is its outcome, as JSON, and the fields in it. */
  | { readonly kind: "replayed"; readonly outcome: string; readonly fields: string | null }
  | { readonly kind: "key-reused" }
  /** The earlier try was applied, and nobody has written since. */
  | { readonly kind: "applied-before" }
  /** The expected version is stored, so another session held the row. */
  | { readonly kind: "held" }
  | { readonly kind: "missing" }
  | { readonly kind: "stale"; readonly rowVersion: RowVersion }
  /** The earlier try may have been applied, and then overwritten or deleted. */
  | { readonly kind: "unknown" };

/**
 * Why a write was not applied. After a lost answer neither "stale" nor "missing" may be said: both
 * promise that nothing was changed. A key knows: the write and the memory of it are one transaction.
 */
export function judge({ expected, next, isKeyed, wasUnknown }: Judged, seen: Seen): Verdict {
  if (seen.outcome !== null) {
    return seen.is_same_request === true
      ? { kind: "replayed", outcome: seen.outcome, fields: seen.fields }
      : { kind: "key-reused" };
  }
  const rowVersion = seen.row_version;
  if (rowVersion !== null && rowVersion === next) return { kind: "applied-before" };
  if (rowVersion !== null && isExpected(expected, rowVersion)) return { kind: "held" };
  if (wasUnknown && !isKeyed) return { kind: "unknown" };
  return rowVersion === null ? { kind: "missing" } : { kind: "stale", rowVersion };
}
