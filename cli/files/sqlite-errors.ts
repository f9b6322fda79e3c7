import { SQLiteError } from "bun:sqlite";

/** Another process holds the lock of a SQLite file. */
export function isBusy(error: unknown): boolean {
  return codeOf(error).startsWith("SQLITE_BUSY");
}

/** The file is no database, a damaged one, or one with other tables than those that are looked for. */
export function isForeign(error: unknown): boolean {
  return /^SQLITE_(?:NOTADB|CORRUPT|ERROR)/.test(codeOf(error));
}

function codeOf(error: unknown): string {
  return error instanceof SQLiteError ? (error.code ?? "") : "";
}
