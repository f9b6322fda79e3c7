import type { ChainedEntry, ChainLink } from "../../domain/audit/audit-chain.ts";
import type { AuditEntry } from "../../domain/audit/audit-entry.ts";
import type { MaybePromise } from "../../domain/maybe-promise.ts";

/** The maximum number of rows that one sealing gives a place. */
export const SEALED_MAX = 500;

/** The maximum number of rows that one transaction of retention deletes. */
export const DELETED_ROWS_MAX = 500;

/** What the first row that is kept of a tenant follows. */
export type ChainStart = ChainLink & {
  /** Of the last row that retention deleted, ms since 1970; null where it deleted none. */
  readonly timeMs: number | null;
};

type AuditQuery = {
  readonly tenant: string;
  /** The number of the row after which the page begins; null for the first row that is stored, whatever its number. */
  readonly after: number | null;
  /** 1 or more. */
  readonly limit: number;
};

export type AuditSearch = {
  readonly tenant: string;
  /** Null: all customers of the tenant. */
  readonly customerId: string | null;
  /** Null: all clients. */
  readonly client: string | null;
  /** ms since 1970; rows of this time are found. */
  readonly fromMs: number;
  /** ms since 1970; rows of this time are not found. */
  readonly untilMs: number;
  /** {@link AuditFindings.last} of the search before; 0 for the first. */
  readonly after: number;
  /** The maximum number of rows to look at, not to find: 1 or more. */
  readonly limit: number;
};

export type AuditFindings = {
  readonly rows: readonly ChainedEntry[];
  /** The number of the last row that was looked at; null where none is left. */
  readonly last: number | null;
};

export type HistoryQuery = {
  readonly tenant: string;
  readonly customerId: string;
  /** {@link CustomerHistory.last} of the page before; null for the newest. */
  readonly before: string | null;
  /** 1 or more. */
  readonly limit: number;
  /** Whether kept values are read, which hold personal data; they are null otherwise. */
  readonly withValues: boolean;
};

type CustomerHistory = {
  readonly items: readonly AuditEntry[];
  /** The position of the last item where older ones follow, else null. */
  readonly last: string | null;
};

/**
 * The audit trail: a row for each accepted write, which the write's own transaction appends. The rows of
 * a tenant are a chain. An engine keeps every rule of audit-store.contract.ts, and lets nobody change a row.
 * Rows go only from the start of a chain: see audit-retention.ts. The values beside a row go with it, or
 * when their customer is erased, which is a row of the trail too.
 */
export interface AuditStore {
  /** Whether rows are appended without a place, which {@link seal} gives them. */
  readonly isSealedLater: boolean;
  /**
   * Gives rows that have no place in their tenant's chain yet one, in the order in which a customer was written:
   * an engine that several services write at once appends without a place, so that no write waits for another.
   *
   * @param isWaiting whether to wait while another service does it; otherwise nothing is done then
   * @returns how many it gave a place, at most {@link SEALED_MAX}
   */
  seal(isWaiting?: boolean): Promise<number>;
  /** All that have a chain, or values that have lost it, in the order of bytes. */
  tenants(): MaybePromise<readonly string[]>;
  chainStart(tenant: string): MaybePromise<ChainStart>;
  /**
   * Lets a tenant's chain start after a row, and deletes the rows up to it, in one transaction.
   *
   * @param start what {@link chainStart} was
   * @param last at most {@link DELETED_ROWS_MAX} rows after it
   * @returns false where another service has moved the start meanwhile; nothing is deleted then
   */
  moveStart(start: ChainLink, last: ChainedEntry): Promise<boolean>;
  /** Whether a customer of this tenant was ever created, in the trail or before there was one. */
  hadCustomers(tenant: string): MaybePromise<boolean>;
  /** Whether the trail has an erasure of this customer, with a place or without. */
  isErased(tenant: string, customerId: string): MaybePromise<boolean>;
  /** How many values of a tenant have lost their row, which only a program that ignores foreign keys can delete alone. */
  countStrayValues(tenant: string): MaybePromise<number>;
  /** How many rows and customers of a tenant do not name the row before them; 0 in an engine that uses no links. */
  countBrokenLinks(tenant: string): MaybePromise<number>;
  /** Of one customer, the newest first, with the rows that have no place yet. */
  history(query: HistoryQuery): MaybePromise<CustomerHistory>;
  /** Rows that have a place, in the order of the chain. */
  rows(query: AuditQuery): MaybePromise<readonly ChainedEntry[]>;
  /**
   * The rows that match among the next ones that have a place, in the order of the chain. Every row is looked at, a
   * bounded number at once: clocks are set back, so numbers tell no times, and an index by time would cost each write
   * one more page of the log (4.2 instead of 3.1 on SQLite).
   */
  search(query: AuditSearch): MaybePromise<AuditFindings>;
}
