import { type Database, SQLiteError, type Statement } from "bun:sqlite";
import { StoreUnavailable } from "../customer-store.ts";
import { asStoreError, forgetPages, placeGuard } from "./sqlite-database.ts";

/** Statements of one write, on the writer's connection. It may run more than once; only its last run counts. */
type Job<T> = () => T;
type Pending = { job: Job<unknown>; resolve: (value: unknown) => void; reject: (error: unknown) => void };
export type Settled = { ok: true; value: unknown } | { ok: false; error: unknown };

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
  readonly #endReads: () => void;
  readonly #begin: Statement;
  readonly #commit: Statement;
  readonly #requirePlace: () => void;
  #pending: Pending[] = [];
  #flushing: Promise<void> | null = null;

  /** @param endReads ends the reads under way: at the latest before anyone learns of a commit */
  constructor(db: Database, endReads: () => void, limits = GROUP_COMMIT_LIMITS) {
    this.#db = db;
    this.#limits = limits;
    this.#endReads = endReads;
    this.#begin = db.prepare("BEGIN IMMEDIATE");
    this.#commit = db.prepare("COMMIT");
    this.#requirePlace = placeGuard(db);
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

  /**
   * The same for one write at once, in this very turn.
   *
   * @returns its outcome; null, with nothing done, while others are waiting or another connection holds the lock
   */
  tryNow<T>(job: Job<T>): Promise<T> | null {
    if (this.#flushing !== null) return null;
    // Before it begins too: the log of writes can't start anew while a read is under way, and would grow without end.
    this.#endReads();
    const begun = this.#tryLock();
    if (begun === "locked") return null;
    const [settled] = begun === null ? this.#commitAll([job]).results : refused([job], begun);
    if (settled === undefined || isUnavailable(settled)) forgetPages(this.#db);
    return settled?.ok ? Promise.resolve(settled.value as T) : Promise.reject(settled?.error);
  }

  /**
   * The same for a batch that has gathered elsewhere, alone on this connection: no other is begun before it is answered.
   *
   * @returns their outcomes once they are durable, in their order
   */
  async runBatch(jobs: readonly Job<unknown>[]): Promise<Settled[]> {
    return this.#settle(jobs, await this.#takeLock());
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
      const settled = await this.#settle(
        batch.map(({ job }) => job),
        failure,
      );
      this.#endReads();
      batch.forEach(({ resolve, reject }, index) => {
        const result = settled[index];
        if (result?.ok) resolve(result.value);
        else reject(result?.error);
      });
      // Whoever was answered may have sent the next write: let this turn's requests arrive before the next batch.
      await new Promise((next) => setImmediate(next));
    }
    this.#flushing = null;
  }

  /** @param failure why the transaction could not begin, or null when it has begun */
  async #settle(jobs: readonly Job<unknown>[], failure: unknown): Promise<Settled[]> {
    const settled = failure === null ? await this.#writeAll(jobs) : refused(jobs, failure);
    if (settled.some(isUnavailable)) forgetPages(this.#db);
    return settled;
  }

  /** Begins the transaction, trying again while another process holds the lock. @returns why it could not, or null */
  async #takeLock(): Promise<unknown> {
    const giveUpAt = performance.now() + this.#limits.lockWaitMs;
    for (;;) {
      const begun = this.#tryLock();
      if (begun !== "locked") return begun;
      if (performance.now() >= giveUpAt) return new StoreUnavailable("another process holds the lock");
      await Bun.sleep(LOCK_RETRY_MS);
    }
  }

  /** @returns null when the transaction has begun, "locked" while another connection holds the lock, else the error */
  #tryLock(): unknown {
    try {
      // One that could not be rolled back when its time came (a failing disk) would refuse every later one.
      if (this.#db.inTransaction) this.#db.run("ROLLBACK");
      this.#requirePlace();
      this.#begin.run();
      return null;
    } catch (error) {
      const isLocked = error instanceof SQLiteError && (error.code ?? "").startsWith("SQLITE_BUSY");
      return isLocked ? "locked" : error;
    }
  }

  /** Runs a batch inside the transaction that was begun. */
  async #writeAll(jobs: readonly Job<unknown>[]): Promise<Settled[]> {
    const settled = this.#commitAll(jobs);
    if (jobs.length === 1 || settled.kind !== "job-failed") return settled.results;
    const results: Settled[] = [];
    for (const [index, job] of jobs.entries()) {
      const failure = await this.#takeLock();
      // The lock was waited for as long as a batch may wait: the others would find it no different.
      if (failure !== null) return [...results, ...refused(jobs.slice(index), failure)];
      results.push(...this.#commitAll([job]).results);
    }
    return results;
  }

  #commitAll(jobs: readonly Job<unknown>[]): {
    kind: "committed" | "job-failed" | "commit-failed";
    results: Settled[];
  } {
    const values: unknown[] = [];
    try {
      for (const job of jobs) values.push(job());
    } catch (error) {
      this.#rollback();
      return { kind: "job-failed", results: refused(jobs, error) };
    }
    try {
      this.#commit.run();
    } catch (error) {
      this.#rollback();
      return { kind: "commit-failed", results: refused(jobs, error) };
    }
    return { kind: "committed", results: values.map((value) => ({ ok: true, value })) };
  }

  #rollback(): void {
    try {
      // SQLite ends the transaction by itself after some errors (disk full) and leaves it open after others.
      if (this.#db.inTransaction) this.#db.run("ROLLBACK");
    } catch {
      // The writes are refused with the error that led here; #tryLock tries again before the next ones.
    }
  }
}

function refused(writes: readonly unknown[], error: unknown): Settled[] {
  const refusal: Settled = { ok: false, error: asStoreError(error) };
  return writes.map(() => refusal);
}

function isUnavailable(settled: Settled): boolean {
  return !settled.ok && settled.error instanceof StoreUnavailable;
}
