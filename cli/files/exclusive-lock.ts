/**
 * One process at a time. The lock is the system's lock on a file, taken through SQLite, as the journal of an
 * import does. It ends with the process that holds it, however that ends, so no lock is ever stale. A file
 * whose existence is the lock would outlive a `kill -9`, and two processes that repair that could both get
 * it.
 */
import { Database } from "bun:sqlite";
import { makeRegularFile } from "./regular-file.ts";
import { isBusy } from "./sqlite-errors.ts";

/** What is done under the lock takes milliseconds; a longer wait means that the other process hangs. */
const WAIT_MS_MAX = 10_000;

/**
 * @param path of the lock. It is made where it is missing, stays empty, and is never removed: another
 * process may be waiting for it. Its directory must exist. @returns "locked" where another process has it
 * all the time. Errors of the system are thrown.
 */
export async function withExclusiveLock<Value>(
  path: string,
  work: () => Value | Promise<Value>,
): Promise<Value | "locked"> {
  makeRegularFile(path, "the lock", "Move it away.");
  const lock = new Database(path, { readwrite: true });
  try {
    lock.run(`PRAGMA busy_timeout = ${WAIT_MS_MAX}`);
    try {
      lock.run("BEGIN EXCLUSIVE");
    } catch (error) {
      if (isBusy(error)) return "locked";
      throw error;
    }
    return await work();
  } finally {
    lock.close();
  }
}
