import { type Database, SQLiteError, type Statement } from "bun:sqlite";
import { StoreUnavailable } from "../../customers/customer-store.ts";
import type { FileGuard } from "../files/file-guard.ts";
import { SCHEMA_VERSION } from "../files/schema.ts";
import { asStoreError, forgetPages, isBusy, schemaGuard } from "../files/sqlite-database.ts";

/** Statements of one write, on the writer's connection. */
export type Job = () => unknown;
export type Settled = { ok: true; value: unknown } | { ok: false; error: unknown };

/** A commit that changed something. */
type CommitTimes = {
  /** How many writes changed something. */
  readonly writes: number;
  /** From the begin of the transaction to its end. The wait for the lock is not part of it. */
  readonly ms: number;
  /** How long its COMMIT took: nearly all of it is the fsync. */
  readonly commitMs: number;
};

export type BatchOutcome = {
  /** The outcomes of the writes, in their order. */
  readonly settled: readonly Settled[];
  /** Null where nothing changed: SQLite makes no fsync then, so its time (0.1 ms) says nothing about the disk. */
  readonly commit: CommitTimes | null;
};

type Outcome = { readonly settled: Settled; readonly hasChanged: boolean };

type Lock =
  | { readonly kind: "taken" }
  | { readonly kind: "held-elsewhere" }
  | { readonly kind: "failed"; readonly error: unknown };

const LOCK_RETRY_MS = 10;

/**
 * A batch of writes in one transaction, since nearly all of a write's cost is the fsync of its
 * commit. If one write fails because of a bug, the batch is rolled back and run again with a savepoint for each
 * write; only that write is undone.
 * While the store cannot answer, and when the commit fails, all writes of the batch are refused.
 */
export class GroupCommit {
  readonly #db: Database;
  readonly #guard: FileGuard;
  readonly #lockWaitMs: number;
  readonly #begin: Statement;
  readonly #commit: Statement;
  readonly #savepoint: Statement;
  readonly #writeSavepoint: Statement;
  readonly #release: Statement;
  readonly #dataVersion: Statement<{ data_version: number }, []>;
  readonly #totalChanges: Statement<{ n: number }, []>;
  readonly #requireSchema: () => void;
  readonly #forget: () => void;
  /** The data version at which the schema was this one's, and since which nothing had to be forgotten. */
  #knownVersion = -1;

  /**
   * @param lockWaitMs how long a batch waits for a lock that
   *   another process holds; the event loop goes on meanwhile
   * @param forget called where what jobs have kept of the database may no longer be
   *   so: another connection has written, or a transaction was undone
   */
  constructor(db: Database, guard: FileGuard, lockWaitMs: number, forget: () => void) {
    // A locked file is waited for without stopping the event loop, so not inside SQLite.
    db.run("PRAGMA busy_timeout = 0");
    this.#db = db;
    this.#guard = guard;
    this.#lockWaitMs = lockWaitMs;
    this.#begin = db.prepare("BEGIN IMMEDIATE");
    this.#commit = db.prepare("COMMIT");
    this.#savepoint = db.prepare("SAVEPOINT batch");
    this.#writeSavepoint = db.prepare("SAVEPOINT one_write");
    this.#release = db.prepare("RELEASE one_write");
    this.#totalChanges = db.prepare("SELECT total_changes() AS n");
    this.#dataVersion = db.prepare("PRAGMA data_version");
    this.#requireSchema = schemaGuard(db);
    this.#forget = forget;
  }

  /**
   * @returns the outcome of one write, at once; null, with
   *   nothing done, while another connection holds the lock
   */
  tryOne(job: Job): BatchOutcome | null {
    const lock = this.#tryLock();
    return lock.kind === "held-elsewhere" ? null : this.#run([job], lock);
  }

  /**
   * One batch at a time: no other is begun before it is answered.
   *
   * @returns the outcomes of the writes, once they are durable
   */
  async commit(jobs: readonly Job[]): Promise<BatchOutcome> {
    const giveUpAt = performance.now() + this.#lockWaitMs;
    for (;;) {
      const lock = this.#tryLock();
      if (lock.kind !== "held-elsewhere") return this.#run(jobs, lock);
      if (performance.now() >= giveUpAt) {
        return refused(jobs, new StoreUnavailable("another process holds the lock"));
      }
      await Bun.sleep(LOCK_RETRY_MS);
    }
  }

  /**
   * Whether a write could begin now.
   *
   * @throws StoreUnavailable when it could not, but for a lock, which passes
   */
  probe(): void {
    const lock = this.#tryLock();
    if (lock.kind === "held-elsewhere") return;
    try {
      if (lock.kind === "failed") throw lock.error;
      // SQLite begins a transaction on a file that may only be read, too, and refuses the first write.
      this.#db.run(`PRAGMA user_version = ${SCHEMA_VERSION}`);
    } catch (error) {
      throw asStoreError(error);
    } finally {
      this.#rollback();
    }
  }

  close(): void {
    const savepoints = [this.#savepoint, this.#writeSavepoint, this.#release];
    const looks = [this.#totalChanges, this.#dataVersion];
    for (const statement of [this.#begin, this.#commit, ...savepoints, ...looks]) statement.finalize();
  }

  /** Begins the transaction, unless another connection holds the lock. */
  #tryLock(): Lock {
    try {
      // One that could not be rolled back when its time came (a failing disk) would refuse every later one.
      if (this.#db.inTransaction) this.#db.run("ROLLBACK");
      this.#guard.require();
      this.#begin.run();
    } catch (error) {
      if (isBusy(error)) return { kind: "held-elsewhere" };
      this.#forgetPagesAfter(error);
      return { kind: "failed", error };
    }
    try {
      this.#noticeOthers();
      return { kind: "taken" };
    } catch (error) {
      this.#rollback();
      return { kind: "failed", error };
    }
  }

  /**
   * Inside a transaction, when no other connection can commit any more. The data version of a connection changes with
   * the commits of others alone (sqlite.org/pragma.html#pragma_data_version).
   */
  #noticeOthers(): void {
    const version = this.#dataVersion.get()?.data_version ?? -1;
    if (version === this.#knownVersion) return;
    this.#forget();
    this.#requireSchema();
    this.#knownVersion = version;
  }

  #run(jobs: readonly Job[], lock: Exclude<Lock, { kind: "held-elsewhere" }>): BatchOutcome {
    if (lock.kind === "failed") return refused(jobs, lock.error);
    const beganAt = performance.now();
    let isCommitting = false;
    try {
      const outcomes = this.#runTogether(jobs) ?? this.#runApart(jobs);
      const writes = outcomes.filter(({ hasChanged }) => hasChanged).length;
      const commitBeganAt = performance.now();
      isCommitting = true;
      this.#commit.run();
      const endedAt = performance.now();
      // A file that was replaced since the first look may have taken the commit with it.
      this.#guard.require();
      const times = { writes, ms: endedAt - beganAt, commitMs: endedAt - commitBeganAt };
      return { settled: outcomes.map(({ settled }) => settled), commit: writes === 0 ? null : times };
    } catch (error) {
      this.#rollback();
      this.#forgetPagesAfter(error);
      return refused(jobs, isCommitting ? commitError(error) : error);
    }
  }

  /**
   * With one savepoint for all: one for each cost two statements more, and a copy of each page that it changed.
   *
   * @returns null, with nothing done, where a write fails because of a bug
   * @throws what makes the store unavailable: the next write would meet it, too
   */
  #runTogether(jobs: readonly Job[]): readonly Outcome[] | null {
    this.#savepoint.run();
    try {
      return this.#runEach(jobs, (job) => ({ ok: true, value: job() }));
    } catch (error) {
      if (asStoreError(error) instanceof StoreUnavailable) throw error;
      this.#db.run("ROLLBACK TO batch");
      this.#forget();
      return null;
    }
  }

  /** @throws as #runTogether does */
  #runApart(jobs: readonly Job[]): readonly Outcome[] {
    return this.#runEach(jobs, (job) => {
      this.#writeSavepoint.run();
      try {
        const value = job();
        this.#release.run();
        return { ok: true, value };
      } catch (error) {
        if (asStoreError(error) instanceof StoreUnavailable) throw error;
        this.#db.run("ROLLBACK TO one_write");
        this.#release.run();
        this.#forget();
        return { ok: false, error };
      }
    });
  }

  #runEach(jobs: readonly Job[], run: (job: Job) => Settled): readonly Outcome[] {
    let before = this.#changes();
    return jobs.map((job) => {
      const settled = run(job);
      const after = this.#changes();
      const hasChanged = settled.ok && after > before;
      before = after;
      return { settled, hasChanged };
    });
  }

  /** Rows changed since the connection was opened. */
  #changes(): number {
    return this.#totalChanges.get()?.n ?? 0;
  }

  #forgetPagesAfter(error: unknown): void {
    if (asStoreError(error) instanceof StoreUnavailable) forgetPages(this.#db);
  }

  #rollback(): void {
    this.#forget();
    try {
      // SQLite ends the transaction by itself after some errors (disk full) and leaves it open after others.
      if (this.#db.inTransaction) this.#db.run("ROLLBACK");
    } catch {
      // The writes are refused with the error that led here; #tryLock tries again before the next ones.
    }
  }
}

/**
 * A COMMIT that the disk failed, or whose files were replaced under it, may be found at the next start. A
 * full disk is no such case: the record of the commit is written last.
 */
function commitError(error: unknown): unknown {
  const failure = asStoreError(error);
  const isFull = error instanceof SQLiteError && error.code === "SQLITE_FULL";
  if (isFull || !(failure instanceof StoreUnavailable)) return failure;
  return new StoreUnavailable(failure.message, { isOutcomeUnknown: true, cause: error });
}

function refused(jobs: readonly Job[], error: unknown): BatchOutcome {
  const refusal: Settled = { ok: false, error: asStoreError(error) };
  return { settled: jobs.map(() => refusal), commit: null };
}
