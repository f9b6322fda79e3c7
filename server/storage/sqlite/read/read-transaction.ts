import type { Database, Statement } from "bun:sqlite";
import { StoreUnavailable } from "../../customers/customer-store.ts";
import type { FileGuard } from "../files/file-guard.ts";
import { asStoreError, forgetPages, schemaGuard } from "../files/sqlite-database.ts";
import { type Params, StatementCache } from "../statements/statement-cache.ts";
import { CommitWatch } from "./commit-watch.ts";

/**
 * How long reads trust that the files are those that were opened. To look takes 10 µs, a
 * sixth of a read; a token that another process revoked on other files is valid here for so long.
 */
const TRUST_FILES_MS = 10;

/**
 * One read transaction for all reads of an event-loop turn: most of a SELECT's cost is taking and giving back
 * the file lock. It ends in `setImmediate`, before a commit of this process, and at the first read after a commit
 * of anyone: a client that learned of a write reads it. A turn can last, since Bun accepts connections for as
 * long as new ones come and answers each at once: 64 of 6,687 reads that followed another service's reply to a
 * write, each on a connection of its own, had returned the customer as it was before.
 */
export class SharedRead {
  readonly #begin: Statement | null;
  readonly #commit: Statement | null;
  readonly #commits: CommitWatch | null;
  readonly #statements: StatementCache;
  readonly #requireSchema: () => void;
  readonly #db: Database;
  readonly #guard: Pick<FileGuard, "requireSame">;
  #filesSeenAt = Number.NEGATIVE_INFINITY;
  #isOpen = false;
  #isSchemaKnown = false;
  #epoch = 0;

  /**
   * @param isShared false for a database in memory: its one connection writes too, and has no locks to spare
   */
  constructor(db: Database, guard: Pick<FileGuard, "requireSame">, isShared: boolean) {
    this.#db = db;
    this.#guard = guard;
    // First, since it may fail: a statement that was left over would keep the connection open.
    this.#commits = isShared ? new CommitWatch(db.filename) : null;
    this.#statements = new StatementCache(db);
    this.#requireSchema = schemaGuard(db);
    this.#begin = isShared ? db.prepare("BEGIN") : null;
    this.#commit = isShared ? db.prepare("COMMIT") : null;
  }

  /**
   * Inside {@link run}: a number that is another one whenever anything was committed since, by this process or any
   * other, but for the commits of {@link endForOwnCommit}. What was read under the same epoch still holds.
   */
  get epoch(): number {
    // One connection does not see its own writes as changes: what it read may never be kept.
    if (this.#commits === null) this.#epoch += 1;
    return this.#epoch;
  }

  get<Row>(sql: string, ...params: Params): Row | null {
    return this.run(() => this.#statements.get<Row>(sql, ...params));
  }

  all<Row>(sql: string, ...params: Params): Row[] {
    return this.run(() => this.#statements.all<Row>(sql, ...params));
  }

  run<T>(read: () => T): T {
    // Asked before the snapshot is taken: a commit in between is then seen as one that came later.
    if (this.#commits?.hasChanged() === true) {
      this.end();
      this.#epoch += 1;
      this.#isSchemaKnown = false;
    }
    try {
      if (!this.#isOpen && this.#begin !== null) this.#open(this.#begin);
      return read();
    } catch (error) {
      this.end();
      const failure = asStoreError(error);
      if (failure instanceof StoreUnavailable) forgetPages(this.#db);
      throw failure;
    }
  }

  #open(begin: Statement): void {
    const now = performance.now();
    if (now - this.#filesSeenAt > TRUST_FILES_MS) {
      this.#guard.requireSame();
      this.#filesSeenAt = now;
    }
    begin.run();
    this.#isOpen = true;
    setImmediate(() => this.end());
    if (this.#isSchemaKnown) return;
    this.#requireSchema();
    this.#isSchemaKnown = true;
  }

  /**
   * Ends the transaction for a commit of this process that changes nothing of what is kept under the epoch.
   *
   * @returns what keeps the epoch, as {@link CommitWatch.expectOwn} does
   */
  endForOwnCommit(): () => void {
    this.end();
    return this.#commits?.expectOwn() ?? (() => {});
  }

  /** Ends the transaction, if one is open; the next read sees everything committed by then. */
  end(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    try {
      if (this.#db.inTransaction) this.#commit?.run();
    } catch {
      // A read transaction that can't commit holds nothing worth keeping; without this its lock would stay.
      if (this.#db.inTransaction) this.#db.run("ROLLBACK");
    }
  }

  close(): void {
    this.end();
    this.#begin?.finalize();
    this.#commit?.finalize();
    this.#statements.close();
  }
}
