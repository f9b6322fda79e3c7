import { type ChainedEntry, type ChainLink, chainFault } from "../../domain/audit/audit-chain.ts";
import { DAY_MS } from "../../domain/text/iso-time.ts";
import { type AuditStore, DELETED_ROWS_MAX } from "./audit-store.ts";

const EVERY_MS = 3_600_000;
/** Between two full deletions: a commit of users' writes takes less, so they hardly wait. */
const FULL_PAUSE_MS = 100;

/** For metrics. */
export type RetentionProgress = {
  /** Since the start of the service, of all tenants. */
  readonly rowsDeleted: number;
  /** When all rows that were too old had been deleted last, in ms since 1970; 0 where that never was. */
  readonly completedAtMs: number;
};

type RetentionParts = {
  readonly now: () => number;
  /** @param rows how many one run deleted, of all tenants */
  readonly onDeleted: (rows: number) => void;
  /** @param fault why no further row of this tenant is deleted, as a sentence */
  readonly onFault: (tenant: string, fault: string) => void;
  /** The rows stay until the next turn. */
  readonly onFailure: (error: unknown) => void;
};

/** Deletes rows of the audit trail that are too old, in small parts: at the start, and then every hour. */
export class AuditRetention implements RetentionProgress {
  readonly #audit: AuditStore;
  readonly #days: number;
  readonly #parts: RetentionParts;
  readonly #stopped = Promise.withResolvers<void>();
  #rowsDeleted = 0;
  #completedAtMs = 0;
  #isStopped = false;
  #timer: NodeJS.Timeout | undefined;
  #turn: Promise<void>;

  constructor(audit: AuditStore, days: number, parts: RetentionParts) {
    this.#audit = audit;
    this.#days = days;
    this.#parts = parts;
    this.#turn = this.#run();
  }

  get rowsDeleted(): number {
    return this.#rowsDeleted;
  }

  get completedAtMs(): number {
    return this.#completedAtMs;
  }

  /** Call it before the store is closed. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#stopped.resolve();
    clearTimeout(this.#timer);
    await this.#turn;
  }

  async #run(): Promise<void> {
    const before = this.#rowsDeleted;
    let isComplete = true;
    try {
      for (const tenant of await this.#audit.tenants()) {
        if (!(await this.#deleteOf(tenant))) isComplete = false;
      }
    } catch (error) {
      isComplete = false;
      this.#parts.onFailure(error);
    }
    if (isComplete) this.#completedAtMs = this.#parts.now();
    const rows = this.#rowsDeleted - before;
    if (rows > 0) this.#parts.onDeleted(rows);
    if (this.#isStopped) return;
    this.#timer = setTimeout(() => {
      this.#turn = this.#run();
    }, EVERY_MS);
    // A process does not live for its next turn.
    this.#timer.unref();
  }

  /** @returns whether no row is left that is too old */
  async #deleteOf(tenant: string): Promise<boolean> {
    while (!this.#isStopped) {
      const beforeMs = this.#parts.now() - this.#days * DAY_MS;
      const { deleted, fault } = await deleteOldRows(this.#audit, tenant, beforeMs);
      this.#rowsDeleted += deleted;
      if (fault !== null) this.#parts.onFault(tenant, fault);
      const isMore = deleted === DELETED_ROWS_MAX;
      // Requests go on between two tenants, too.
      await Promise.race([Bun.sleep(isMore ? FULL_PAUSE_MS : 0), this.#stopped.promise]);
      if (!isMore) return fault === null;
    }
    return false;
  }
}

/**
 * Deletes the oldest rows of a tenant up to the first that is young enough, at most {@link DELETED_ROWS_MAX}. Rows that
 * are not in order stay, and those after them: retention must not remove what shows that someone changed the trail.
 */
export async function deleteOldRows(
  audit: AuditStore,
  tenant: string,
  beforeMs: number,
): Promise<{ readonly deleted: number; readonly fault: string | null }> {
  const start = await audit.chainStart(tenant);
  const oldest = { tenant, after: start.number };
  const [first] = await audit.rows({ ...oldest, limit: 1 });
  if (first === undefined || first.timeMs >= beforeMs) return { deleted: 0, fault: null };
  const rows = await audit.rows({ ...oldest, limit: DELETED_ROWS_MAX });
  const { last, fault } = lastOld(start, rows, beforeMs);
  const isMoved = last !== null && (await audit.moveStart(start, last));
  if (isMoved) return { deleted: last.number - start.number, fault };
  // Another service may have deleted rows while these were read.
  return { deleted: 0, fault: (await audit.chainStart(tenant)).number === start.number ? fault : null };
}

/** @returns the last of the rows in order from the start on that are all older than a time */
function lastOld(
  start: ChainLink,
  rows: readonly ChainedEntry[],
  beforeMs: number,
): { readonly last: ChainedEntry | null; readonly fault: string | null } {
  let last: ChainedEntry | null = null;
  for (const row of rows) {
    if (row.timeMs >= beforeMs) break;
    const fault = chainFault(last ?? start, row);
    if (fault !== null) return { last, fault };
    last = row;
  }
  return { last, fault: null };
}
