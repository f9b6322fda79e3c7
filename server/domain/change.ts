import type { FieldName } from "./field-registry.ts";

/** An accepted write of a customer as clients see it: an entry of its history. */
export type Change = {
  /** RFC 3339, in UTC, to the millisecond. */
  readonly time: string;
  readonly client: string;
  readonly operation: string;
  /** The fields whose values became others, of those that the caller may read. */
  readonly changed: readonly FieldName[];
  readonly requestId: string;
  /** The entity-tag that it made; null of a removal. */
  readonly etag: string | null;
  /** The entity-tag before it; null of a creation. */
  readonly previousEtag: string | null;
  readonly withoutIfMatch: boolean;
};

/** The maximum number of changes that a 412 lists. */
export const LISTED_CHANGES_MAX = 20;
