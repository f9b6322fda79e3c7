import { type Database, SQLiteError, type Statement } from "bun:sqlite";
import { StoreUnavailable } from "./customer-store.ts";
import { asStoreError } from "./sqlite-database.ts";

/** Statements of one write, on the writer's connection. It may run more than once; only its last run counts. */
type Job<T> = () => T;
type Pending = { job: Job<unknown>; resolve: (value: unknown) => void; reject: (error: unknown) => void };
type Settled = { ok: true; value: unknown } | { ok: false; error: unknown };

export type GroupCommitLimits = {
  /** How long a batch waits for a lock that another process holds. The event loop goes on meanwhile. */
  readonly lockWaitMs: number;
  /** How many writes may wait; further ones are refused at once. */
  readonly pendingMax: number;
};

export const GROUP_COMMIT_LIMITS: GroupCommitLimits = { lockWaitMs: 5_000, pendingMax: 10_000 };

const LOCK_RETRY_MS = 10;

/**
 * All writes of an event-loop turn in one transaction, since nearly all of a write's cost is the fsync of its
 * commit. Each is answered only after that commit. A write that fails takes no neighbour down: the batch is
 * rolled back and its writes run again one by one. A failed commit refuses all of its writes.
 */
export class GroupCommit {
  readonly #db: Database;
  readonly #limits: GroupCommitLimits;
  readonly #beforeAnswers: () => void;
  readonly #begin: Statement;
  readonly #commit: Statement;
  #pending: Pending[] = [];
  #flushing: Promise<void> | null = null;

  /** @param beforeAnswers runs after each commit, before anyone learns of it */
  constructor(db: Database, beforeAnswers: () => void, limits = GROUP_COMMIT_LIMITS) {
    this.#db = db;
    this.#limits = limits;
    this.#beforeAnswers = beforeAnswers;
    this.#begin = db.prepare("BEGIN IMMEDIATE");
    this.#commit = db.prepare("COMMIT");
  }

  /** @returns the job's value once it is durable; fails with StoreUnavailable, or with the job's own error */
  run<T>(job: Job<T>): Promise<T> {
    if (this.#pending.length >= this.#limits.pendingMax) {
      return Promise.reject(new StoreUnavailable("too many writes are waiting"));
    }
    return new Promise<T>((resolve, reject) => {
      this.#pending.push({ job, resolve: resolve as (value: unknown) => void, reject });
      this.#flushing ??= this.#flushSoon();
    });
  }

  /** Waits for the writes taken so far, then gives back its statements. */
  async close(): Promise<void> {
    while (this.#flushing !== null) await this.#flushing;
    this.#begin.finalize();
    this.#commit.finalize();
  }

  async #flushSoon(): Promise<void> {
    await new Promise((next) => setImmediate(next));
    while (this.#pending.length > 0) {
      const failure = await this.#takeLock();
      const batch = this.#pending;
      this.#pending = [];
      const settled =
        failure === null ? this.#writeAll(batch) : batch.map((): Settled => ({ ok: false, error: failure }));
      this.#beforeAnswers();
      batch.forEach(({ resolve, reject }, index) => {
        const result = settled[index];
        if (result?.ok) resolve(result.value);
        else reject(asStoreError(result?.error));
      });
      // Whoever was answered may have sent the next write: let this turn's requests arrive before the next batch.
      await new Promise((next) => setImmediate(next));
    }
    this.#flushing = null;
  }

  /** Begins the transaction, trying again while another process holds the lock. @returns why it could not, or null */
  async #takeLock(): Promise<unknown> {
    const giveUpAt = performance.now() + this.#limits.lockWaitMs;
    for (;;) {
      try {
        this.#begin.run();
        return null;
      } catch (error) {
        const isLocked = error instanceof SQLiteError && (error.code ?? "").startsWith("SQLITE_BUSY");
        if (!isLocked || performance.now() >= giveUpAt) return error;
      }
      await Bun.sleep(LOCK_RETRY_MS);
    }
  }

  /** Runs a batch inside the transaction that was begun. */
  #writeAll(batch: readonly Pending[]): Settled[] {
    const values: unknown[] = [];
    try {
      for (const { job } of batch) values.push(job());
    } catch (error) {
      this.#rollback();
      return batch.length === 1 ? [{ ok: false, error }] : batch.map(({ job }) => this.#writeAlone(job));
    }
    try {
      this.#commit.run();
    } catch (error) {
      this.#rollback();
      return batch.map(() => ({ ok: false, error }));
    }
    return values.map((value) => ({ ok: true, value }));
  }

  #writeAlone(job: Job<unknown>): Settled {
    try {
      this.#begin.run();
      const value = job();
      this.#commit.run();
      return { ok: true, value };
    } catch (error) {
      this.#rollback();
      return { ok: false, error };
    }
  }

  #rollback(): void {
    // SQLite ends the transaction by itself after some errors (disk full) and leaves it open after others.
    if (this.#db.inTransaction) this.#db.run("ROLLBACK");
  }
}
