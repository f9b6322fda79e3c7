import type { MaybePromise } from "../../domain/maybe-promise.ts";

/** What a column holds. All values travel as text, which is the same in every engine: digests in hexadecimal. */
type ColumnKind = "text" | "uuid" | "integer" | "digest";

type CopyTable = {
  /** In the order of the values of a row. */
  readonly columns: Readonly<Record<string, ColumnKind>>;
  /** How many columns, from the first, are the primary key. Rows come in its order, that of bytes. */
  readonly keyColumns: 1 | 2 | 5;
};

/** All that a database holds, in the order in which it is copied: what refers to a row comes after it. */
const COPY_TABLES = {
  tenants: { columns: { tenant: "text", newest_id: "uuid" }, keyColumns: 1 },
  customers: {
    columns: {
      tenant: "text",
      id: "uuid",
      name: "text",
      email: "text",
      email_folded: "text",
      status: "text",
      row_version: "text",
      created_at: "integer",
    },
    keyColumns: 2,
  },
  tokens: {
    columns: {
      digest: "digest",
      prefix: "text",
      client: "text",
      role: "text",
      tenant: "text",
      created_at: "integer",
      expires_at: "integer",
      last_used_at: "integer",
      revoked_at: "integer",
      scope_fields: "text",
      scope_operations: "text",
      last_used_from: "text",
      replaced_by: "text",
      token_id: "text",
    },
    keyColumns: 1,
  },
  idempotency_keys: {
    columns: {
      token_id: "text",
      key: "text",
      digest: "digest",
      outcome: "text", // as outcomeText makes it, with the fields
      expires_at: "integer",
      tenant: "text", // whose fields the outcome holds, both null where it holds none
      customer_id: "uuid",
    },
    keyColumns: 2,
  },
  audit_anchors: {
    columns: { tenant: "text", number: "integer", hash: "digest", time: "integer" },
    keyColumns: 1,
  },
  // Rows that have no place in their chain yet get one before a copy begins.
  audit: {
    columns: {
      tenant: "text",
      number: "integer",
      time: "integer",
      client: "text",
      token_prefix: "text",
      request_id: "text",
      operation: "text",
      customer_id: "uuid",
      version_before: "text",
      version_after: "text",
      changed: "text",
      without_if_match: "integer",
      with_key: "integer",
      values_digest: "digest",
      hash: "digest",
    },
    keyColumns: 2,
  },
  audit_values: {
    columns: { tenant: "text", number: "integer", salt: "digest", content: "text" },
    keyColumns: 2,
  },
  write_counts: {
    columns: {
      tenant: "text",
      client: "text",
      day: "text",
      client_version: "text",
      method: "text",
      with_if_match: "integer",
      allowed: "integer",
      refused: "integer",
      first_at: "integer",
      last_with_at: "integer",
      first_without_at: "integer",
      last_without_at: "integer",
    },
    keyColumns: 5,
  },
} as const satisfies Readonly<Record<string, CopyTable>>;

export type CopyTableName = keyof typeof COPY_TABLES;
export const COPY_TABLE_NAMES = Object.keys(COPY_TABLES) as readonly CopyTableName[];

export type CopyRow = readonly (string | null)[];

/** Names and kinds of the columns of a table. */
export function columnsOfTable(table: CopyTableName): readonly (readonly [string, ColumnKind])[] {
  return Object.entries<ColumnKind>(COPY_TABLES[table].columns);
}

/** The columns of the primary key. */
export function keyOfTable(table: CopyTableName): readonly (readonly [string, ColumnKind])[] {
  return columnsOfTable(table).slice(0, COPY_TABLES[table].keyColumns);
}

/** The values of the primary key. */
export function keyOfRow(table: CopyTableName, row: CopyRow): (string | null)[] {
  return row.slice(0, COPY_TABLES[table].keyColumns);
}

/** A database whose rows can be read in the order of their keys. */
export interface CopySource {
  /** The key that encrypts paging cursors, hexadecimal. It is drawn for each database, so that it names one. */
  readonly identity: string;
  /** @param after the row after which the page begins, or null for the first */
  page(table: CopyTableName, after: CopyRow | null, limit: number): MaybePromise<readonly CopyRow[]>;
}

/**
 * What a copy finds in its target.
 *
 * - `new`: nothing, and it is now marked as the target of this copy: no service starts on it.
 * - `resumed`: a part of this very copy.
 * - `finished`: a database that was copied from this one before, or a service has run on such a copy since.
 */
export type TargetState = "new" | "resumed" | "finished";

export interface CopyTarget extends CopySource {
  readonly state: TargetState;
  /** How to remove what a copy has left; completes the sentence "To begin anew, …". */
  readonly removal: string;
  /** The row with the greatest key, after which the copy goes on. */
  last(table: CopyTableName): MaybePromise<CopyRow | null>;
  /** All of them or none, durable. */
  add(table: CopyTableName, rows: readonly CopyRow[]): MaybePromise<void>;
  /** Lets services start on it. */
  finish(): MaybePromise<void>;
}

type Found = {
  /** Whether it is marked as the target of a copy that has not finished. */
  readonly isMarked: boolean;
  readonly isEmpty: boolean;
  readonly isSameIdentity: boolean;
};

/** @returns the state; or why nothing may be copied there: other rows, or a part of another copy */
export function targetStateOf({
  isMarked,
  isEmpty,
  isSameIdentity,
}: Found): TargetState | "not-empty" | "another-copy" {
  if (isEmpty) return "new";
  if (isMarked) return isSameIdentity ? "resumed" : "another-copy";
  return isSameIdentity ? "finished" : "not-empty";
}

type KeptOutcome = {
  readonly kind: string;
  readonly id?: string;
  readonly rowVersion?: string;
  readonly fields?: object | null;
};

/**
 * A kept outcome as one text, however an engine writes it.
 *
 * @param fields JSON of the fields where they are kept apart
 */
export function outcomeText(outcome: string, fields: string | null = null): string {
  const kept = JSON.parse(outcome) as KeptOutcome;
  const { kind, id, rowVersion } = kept;
  return JSON.stringify({ kind, id, rowVersion, fields: fields === null ? kept.fields : JSON.parse(fields) });
}

/** An outcome of {@link outcomeText}, and its fields apart. */
export function splitOutcome(text: string): { readonly outcome: string; readonly fields: string } {
  const kept = JSON.parse(text) as KeptOutcome;
  return { outcome: JSON.stringify({ ...kept, fields: null }), fields: JSON.stringify(kept.fields) };
}
