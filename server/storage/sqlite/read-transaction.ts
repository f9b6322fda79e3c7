import type { Database, Statement } from "bun:sqlite";
import { StoreUnavailable } from "../customer-store.ts";
import { asStoreError, forgetPages, schemaGuard } from "./sqlite-database.ts";

/**
 * A turn can last: Bun accepts connections for as long as new ones come, and answers each before it looks for anything
 * else. After so many reads the next one sees what was committed since, whether the turn is over or not.
 */
export const SHARED_READS_MAX = 64;

/**
 * One read transaction for all reads of an event-loop turn: most of a SELECT's cost is taking and giving back
 * the file lock. It ends in `setImmediate`, or before the answers of a group of writes go out, so that whoever
 * learns of a write reads it.
 */
export class SharedRead {
  readonly #begin: Statement | null;
  readonly #commit: Statement | null;
  readonly #dataVersion: Statement<{ data_version: number }, []> | null;
  readonly #requireSchema: () => void;
  readonly #db: Database;
  #open = false;
  /** In the open transaction. */
  #shared = 0;
  #isInTurn = false;
  #beganAt = Number.NEGATIVE_INFINITY;
  #seenVersion = 0;
  #epoch = 0;

  /** @param isShared false for a database in memory: its one connection writes too, and has no locks to spare */
  constructor(db: Database, isShared: boolean) {
    this.#db = db;
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
  /** How long nobody had read before the turn that reads now, in ms. */
  idleMs = Number.POSITIVE_INFINITY;

  run<T>(read: () => T): T {
    this.count += 1;
    this.#shared += 1;
    if (this.#shared > SHARED_READS_MAX) this.end();
    try {
      if (!this.#open && this.#begin !== null) {
        this.#begin.run();
        this.#open = true;
        this.#shared = 1;
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

  /** A turn may have several transactions, since writes end them. */
  #noteTurn(): void {
    if (this.#isInTurn) return;
    this.#isInTurn = true;
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
