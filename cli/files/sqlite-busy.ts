import { SQLiteError } from "bun:sqlite";

/** Another process holds the lock of a SQLite file. */
export function isBusy(error: unknown): boolean {
  return error instanceof SQLiteError && error.code?.startsWith("SQLITE_BUSY") === true;
}
