import type { FieldName } from "./field-registry.ts";

/** The values of a field that a write changed. `before` is null of a creation. */
type ChangedValue = { readonly before: string | null; readonly after: string };
export type ChangedValues = Readonly<Partial<Record<FieldName, ChangedValue>>>;

/** An accepted write of a customer as a 412 names it. */
export type NamedChange = {
  /** RFC 3339, in UTC, to the millisecond. */
  readonly time: string;
  readonly client: string;
  readonly operation: string;
  /** The fields whose values changed, of those that the caller may read. */
  readonly changed: readonly FieldName[];
  readonly requestId: string;
  /** The entity-tag that it made; null of a removal. */
  readonly etag: string | null;
  /** The entity-tag before it; null of a creation. */
  readonly previousEtag: string | null;
  readonly withoutIfMatch: boolean;
};

/** An entry of the history of a customer. */
export type Change = NamedChange & {
  /** What those fields held; null where the policy keeps no values, and where they were erased. */
  readonly values: ChangedValues | null;
};

/** The maximum number of changes that a 412 lists. */
export const LISTED_CHANGES_MAX = 20;
