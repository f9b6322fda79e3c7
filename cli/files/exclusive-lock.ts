/**
 * One process at a time. The lock is one of the system's on a file (through SQLite, as the journal of an import
 * uses it too): it ends with the process that holds it, however that ends, so none is ever stale. A file that is
 * made to be the lock and removed afterwards would outlive a `kill -9`, and two processes that clean it up can meet.
 */
import { Database, SQLiteError } from "bun:sqlite";
import { closeSync, openSync } from "node:fs";

/** What is done under the lock takes milliseconds: a longer wait means that a process hangs. */
const WAIT_MS_MAX = 10_000;

/**
 * @param path of the lock: made where it is missing, always empty, and left there, since removing it could take it
 * from under another process. Its directory must exist. @returns "locked" where another process has it all the time.
 * Errors of the system are thrown.
 */
export async function withExclusiveLock<Value>(
  path: string,
  work: () => Value | Promise<Value>,
): Promise<Value | "locked"> {
  closeSync(openSync(path, "a", 0o600));
  const lock = new Database(path, { readwrite: true });
  try {
    lock.run(`PRAGMA busy_timeout = ${WAIT_MS_MAX}`);
    try {
      lock.run("BEGIN EXCLUSIVE");
    } catch (error) {
      if (error instanceof SQLiteError && error.code?.startsWith("SQLITE_BUSY")) return "locked";
      throw error;
    }
    return await work();
  } finally {
    lock.close();
  }
}
