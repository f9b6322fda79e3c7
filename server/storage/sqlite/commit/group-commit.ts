import { type Database, SQLiteError, type Statement } from "bun:sqlite";
import { StoreUnavailable } from "../../customer-store.ts";
import type { FileGuard } from "../files/file-guard.ts";
import { SCHEMA_VERSION } from "../files/schema.ts";
import { asStoreError, forgetPages, schemaGuard } from "../files/sqlite-database.ts";

/**
 * Statements of one write, on the writer's connection. It may run more than once; only its last run counts.
 */
export type Job = () => unknown;
export type Settled = { ok: true; value: unknown } | { ok: false; error: unknown };

/** In ms: a commit with its writes, without the wait for the lock; and COMMIT alone. */
export type CommitTimes = { readonly ms: number; readonly commitMs: number };

const LOCK_RETRY_MS = 10;

/**
 * A batch of writes in one transaction, since nearly all of a write's cost is the fsync
 * of its commit. A write that fails does not affect the others: the batch is rolled
 * back and its writes run again one by one. A failed commit refuses all of its writes.
 */
export class GroupCommit {
  readonly #db: Database;
  readonly #guard: FileGuard;
  readonly #lockWaitMs: number;
  readonly #begin: Statement;
  readonly #commit: Statement;
  readonly #requireSchema: () => void;
  readonly #totalChanges: Statement<{ changes: number }, []>;
  /** Null where the last batch changed nothing: a refused write needs no fsync, and says nothing of the disk. */
  lastCommit: CommitTimes | null = null;

  /**
   * @param lockWaitMs how long a batch waits for a lock that
   *   another process holds; the event loop goes on meanwhile
   */
  constructor(db: Database, guard: FileGuard, lockWaitMs: number) {
    // A locked file is waited for without stopping the event loop, so not inside SQLite.
    db.run("PRAGMA busy_timeout = 0");
    this.#db = db;
    this.#guard = guard;
    this.#lockWaitMs = lockWaitMs;
    this.#begin = db.prepare("BEGIN IMMEDIATE");
    this.#commit = db.prepare("COMMIT");
    this.#totalChanges = db.prepare("SELECT total_changes() AS changes");
    this.#requireSchema = schemaGuard(db);
  }

  /**
   * @returns the outcome of one write, at once; null, with
   *   nothing done, while another connection holds the lock
   */
  tryOne(job: Job): Settled | null {
    this.lastCommit = null;
    const begun = this.#tryLock();
    if (begun === "locked") return null;
    const [settled] = begun === null ? this.#commitAll([job]).results : refused([job], begun);
    return settled ?? null;
  }

  /**
   * One batch at a time: no other is begun before it is answered.
   *
   * @returns the outcomes of the writes, once they are durable, in their order
   */
  async commit(jobs: readonly Job[]): Promise<Settled[]> {
    this.lastCommit = null;
    const failure = await this.#takeLock();
    if (failure !== null) return refused(jobs, failure);
    const settled = this.#commitAll(jobs);
    if (jobs.length === 1 || settled.kind !== "job-failed") return settled.results;
    // A full or failing disk would fail the others too, each after a wait of its own.
    if (settled.isUnavailable) return settled.results;
    const results: Settled[] = [];
    for (const [index, job] of jobs.entries()) {
      const failure = await this.#takeLock();
      // The lock wait is used up, so the rest is refused.
      if (failure !== null) return [...results, ...refused(jobs.slice(index), failure)];
      results.push(...this.#commitAll([job]).results);
    }
    return results;
  }

  /**
   * Whether a write could begin now.
   *
   * @throws StoreUnavailable when it could not, but for a lock, which passes
   */
  probe(): void {
    const begun = this.#tryLock();
    if (begun === "locked") return;
    try {
      if (begun !== null) throw begun;
      // SQLite begins a transaction on a file that may only be read, too, and refuses the first write.
      this.#db.run(`PRAGMA user_version = ${SCHEMA_VERSION}`);
    } catch (error) {
      throw asStoreError(error);
    } finally {
      this.#rollback();
    }
  }

  close(): void {
    this.#begin.finalize();
    this.#commit.finalize();
    this.#totalChanges.finalize();
  }

  /**
   * Begins the transaction, trying again while another process holds the lock.
   *
   * @returns why it could not, or null
   */
  async #takeLock(): Promise<unknown> {
    const giveUpAt = performance.now() + this.#lockWaitMs;
    for (;;) {
      const begun = this.#tryLock();
      if (begun !== "locked") return begun;
      if (performance.now() >= giveUpAt) return new StoreUnavailable("another process holds the lock");
      await Bun.sleep(LOCK_RETRY_MS);
    }
  }

  /**
   * @returns null when the transaction has begun, "locked"
   *   while another connection holds the lock, else the error
   */
  #tryLock(): unknown {
    try {
      // One that could not be rolled back when its time came (a failing disk) would refuse every later one.
      if (this.#db.inTransaction) this.#db.run("ROLLBACK");
      this.#guard.require();
      this.#begin.run();
    } catch (error) {
      if (error instanceof SQLiteError && (error.code ?? "").startsWith("SQLITE_BUSY")) return "locked";
      if (asStoreError(error) instanceof StoreUnavailable) forgetPages(this.#db);
      return error;
    }
    try {
      this.#requireSchema();
      return null;
    } catch (error) {
      this.#rollback();
      return error;
    }
  }

  #commitAll(jobs: readonly Job[]): {
    kind: "committed" | "job-failed" | "commit-failed";
    isUnavailable: boolean;
    results: Settled[];
  } {
    const values: unknown[] = [];
    const began = performance.now();
    const changesBefore = this.#changes();
    let isCommitting = false;
    try {
      for (const job of jobs) values.push(job());
      isCommitting = true;
      const isChange = this.#changes() !== changesBefore;
      const commitBegan = performance.now();
      this.#commit.run();
      const ended = performance.now();
      if (isChange) this.lastCommit = { ms: ended - began, commitMs: ended - commitBegan };
      // A file that was replaced since the first look may have taken the commit with it.
      this.#guard.require();
    } catch (error) {
      this.#rollback();
      const isUnavailable = asStoreError(error) instanceof StoreUnavailable;
      const kind = isCommitting ? "commit-failed" : "job-failed";
      return { kind, isUnavailable, results: this.#refusedBy(error, jobs) };
    }
    return {
      kind: "committed",
      isUnavailable: false,
      results: values.map((value) => ({ ok: true, value })),
    };
  }

  #changes(): number {
    return this.#totalChanges.get()?.changes ?? 0;
  }

  #refusedBy(error: unknown, jobs: readonly Job[]): Settled[] {
    if (asStoreError(error) instanceof StoreUnavailable) forgetPages(this.#db);
    return refused(jobs, error);
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
