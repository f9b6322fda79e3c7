import type { Database, Statement } from "bun:sqlite";
import { StoreUnavailable } from "../../customer-store.ts";
import { asStoreError, forgetPages, schemaGuard } from "../files/sqlite-database.ts";
import { CommitCounter } from "./commit-counter.ts";

/**
 * A client needs longer than this to receive another service's reply to a write and to have its next request read here.
 * Asking for the count of commits at every read costs 7 µs of a read's 39.
 */
const CURRENT_MS = 0.05;

/**
 * One read transaction for all reads of an event-loop turn: most of a SELECT's cost is taking and giving back
 * the file lock. It ends in `setImmediate`, before the answers of a batch of writes go out, and at the first read after a
 * commit of another process: anyone who learned of a write reads it. A turn can last, since Bun accepts connections for as
 * long as new ones come and answers each at once.
 */
export class SharedRead {
  readonly #begin: Statement | null;
  readonly #commit: Statement | null;
  readonly #dataVersion: Statement<{ data_version: number }, []> | null;
  readonly #requireSchema: () => void;
  readonly #db: Database;
  #open = false;
  readonly #commits: CommitCounter;
  #seenCommits = Number.NaN;
  /** When the snapshot was last known to be the newest. */
  #currentAt = Number.NEGATIVE_INFINITY;
  #isInTurn = false;
  #beganAt = Number.NEGATIVE_INFINITY;
  #seenVersion = 0;
  #epoch = 0;

  /** @param isShared false for a database in memory: its one connection writes too, and has no locks to spare */
  constructor(db: Database, isShared: boolean) {
    this.#db = db;
    this.#commits = new CommitCounter(db.filename);
    this.#requireSchema = schemaGuard(db);
    this.#begin = isShared ? db.prepare("BEGIN") : null;
    this.#commit = isShared ? db.prepare("COMMIT") : null;
    this.#dataVersion = isShared ? db.prepare("PRAGMA data_version") : null;
  }

  /**
   * Inside {@link run}: a number that is another one whenever anything was committed since, by this process or any
   * other. What was read under the same epoch still holds.
   */
  get epoch(): number {
    // One connection does not see its own writes as changes: what it read may never be kept.
    if (this.#dataVersion === null) this.#epoch += 1;
    return this.#epoch;
  }

  /** How many reads there were. */
  count = 0;
  /** How many of them before the last turn in which there was one: requests that arrive together wait for nobody. */
  countBeforeTurn = 0;
  /** How long nobody had read before the turn that reads now, in ms. */
  idleMs = Number.POSITIVE_INFINITY;

  run<T>(read: () => T): T {
    if (this.#open && !this.#isCurrent()) this.end();
    this.count += 1;
    try {
      if (!this.#open && this.#begin !== null) {
        // Before the snapshot is taken: a commit in between is then seen as one that came later.
        this.#currentAt = performance.now();
        this.#seenCommits = this.#commits.read();
        this.#begin.run();
        this.#open = true;
        this.#noteTurn();
        const version = this.#dataVersion?.get()?.data_version ?? 0;
        if (version !== this.#seenVersion) {
          this.#requireSchema();
          this.#epoch += 1;
        }
        this.#seenVersion = version;
      }
      return read();
    } catch (error) {
      this.end();
      const failure = asStoreError(error);
      if (failure instanceof StoreUnavailable) forgetPages(this.#db);
      throw failure;
    }
  }

  /**
   * A request that arrives in this turn may follow a write that another service acknowledged: 64 of 6,687 such reads,
   * each on a connection of its own, returned the customer as it was before.
   */
  #isCurrent(): boolean {
    const now = performance.now();
    if (now - this.#currentAt < CURRENT_MS) return true;
    if (this.#commits.read() !== this.#seenCommits) return false;
    this.#currentAt = now;
    return true;
  }

  /** A turn may have several transactions, since writes end them. */
  #noteTurn(): void {
    if (this.#isInTurn) return;
    this.#isInTurn = true;
    this.countBeforeTurn = this.count - 1;
    const now = performance.now();
    this.idleMs = now - this.#beganAt;
    this.#beganAt = now;
    setImmediate(() => {
      this.#isInTurn = false;
      this.end();
    });
  }

  /** Ends the transaction, if one is open; the next read sees everything committed by then. */
  end(): void {
    if (!this.#open) return;
    this.#open = false;
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
    this.#dataVersion?.finalize();
  }
}
