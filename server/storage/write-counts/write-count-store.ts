import type { MaybePromise } from "../../domain/maybe-promise.ts";
import type { WriteCount } from "../../domain/rollout/write-count.ts";

/** The maximum number of counts that one call adds, and that one purge deletes. */
export const COUNTS_MAX = 100;

/** The maximum number of counts in one page: SQLite reads them in 1 ms, during which the service does nothing else. */
export const COUNTS_PAGE = 250;

type CountKey = Pick<WriteCount, "tenant" | "client" | "day" | "version" | "method">;

/** The store's own order of the columns. @returns the parameters of a page's statement */
export function countKeyParams(after: CountKey | null): readonly string[] {
  const { tenant, client, day, version, method } = after ?? FIRST_KEY;
  return [tenant, client, day, version, method];
}
/** Before that of any count. */
const FIRST_KEY = { tenant: "", client: "", day: "", version: "", method: "" };

/** All counts from a day on, in pages. */
export async function* countPages(
  store: Pick<WriteCountStore, "page">,
  fromDay: string,
): AsyncGenerator<readonly WriteCount[]> {
  let after: CountKey | null = null;
  do {
    const page: readonly WriteCount[] = await store.page(fromDay, after);
    yield page;
    after = page.length < COUNTS_PAGE ? null : (page.at(-1) ?? null);
  } while (after !== null);
}

/** All counts from a day on, for a command: they may be hundreds of thousands. */
export async function allCounts(
  store: Pick<WriteCountStore, "page">,
  fromDay: string,
): Promise<readonly WriteCount[]> {
  return (await Array.fromAsync(countPages(store, fromDay))).flat();
}

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
  /**
   * Some of the counts, in the order of tenant, client, day, version and method: at most {@link COUNTS_PAGE}, since a
   * large installation has hundreds of thousands.
   *
   * @param fromDay the first day, UTC, such as 2026-11-28
   * @param after the last count of the page before; null: from the first one
   */
  page(fromDay: string, after: CountKey | null): MaybePromise<readonly WriteCount[]>;
  /** Deletes counts of earlier days, at most {@link COUNTS_MAX}. @returns how many it deleted */
  purge(beforeDay: string): Promise<number>;
}
