import { type Database, SQLiteError, type Statement } from "bun:sqlite";
import { asStoreError } from "./sqlite-database.ts";

/** One write, one transaction, at once and in this thread. */
export class ImmediateCommit {
  readonly #db: Database;
  readonly #begin: Statement;
  readonly #commit: Statement;

  constructor(db: Database) {
    this.#db = db;
    this.#begin = db.prepare("BEGIN IMMEDIATE");
    this.#commit = db.prepare("COMMIT");
  }

  /**
   * @returns the job's outcome once it is durable; null, with nothing done, where another connection holds the lock
   * @throws StoreUnavailable, or the job's own error; either way nothing was written
   */
  try<T>(job: () => T): { readonly value: T } | null {
    try {
      if (this.#db.inTransaction) this.#db.run("ROLLBACK");
      this.#begin.run();
    } catch (error) {
      if (error instanceof SQLiteError && (error.code ?? "").startsWith("SQLITE_BUSY")) return null;
      throw asStoreError(error);
    }
    try {
      const value = job();
      this.#commit.run();
      return { value };
    } catch (error) {
      this.#rollback();
      throw asStoreError(error);
    }
  }

  close(): void {
    this.#begin.finalize();
    this.#commit.finalize();
  }

  #rollback(): void {
    try {
      if (this.#db.inTransaction) this.#db.run("ROLLBACK");
    } catch {
      // The write is refused with the error that led here; the next one tries again.
    }
  }
}
