import type { MaybePromise } from "../domain/maybe-promise.ts";
import type { WriteCount } from "../domain/rollout/write-count.ts";

/** The maximum number of counts that one call adds, and that one purge deletes. */
export const COUNTS_MAX = 100;

/**
 * Counts of writes with and without If-Match, of all services on a database. An engine keeps every
 * rule of write-count-store.contract.ts, and fails with StoreUnavailable when it cannot answer.
 */
export interface WriteCountStore {
  /**
   * Adds counts to those of the same series and day. A database server whose answer was lost is asked again,
   * and may then have counted twice: a count too many delays an enforcement, one too few may break a client.
   *
   * @param counts at most {@link COUNTS_MAX}
   */
  add(counts: readonly WriteCount[]): Promise<void>;
  /** @param fromDay the first day, UTC, such as 2026-11-28 */
  list(fromDay: string): MaybePromise<readonly WriteCount[]>;
  /** Deletes counts of earlier days, at most {@link COUNTS_MAX}. @returns how many it deleted */
  purge(beforeDay: string): Promise<number>;
}
