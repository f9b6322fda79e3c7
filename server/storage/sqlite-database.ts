import { Database, SQLiteError } from "bun:sqlite";
import { existsSync, mkdirSync } from "node:fs";
import { dirname } from "node:path";
import { StoreUnavailable } from "./customer-store.ts";
import { MIGRATIONS } from "./migrations.ts";

/** Marks a file as a database of this service: "CUST" as a 32-bit integer (SQLite's application_id). */
export const APPLICATION_ID = 0x43555354;

export const MEMORY = ":memory:";

const BUSY_TIMEOUT_MS = 5_000;

/** A database that can't be used as it is. The message says why and what to do. */
export class DatabaseRefused extends Error {
  override readonly name = "DatabaseRefused";
}

/**
 * Opens the database, made (mode 0600, by the process's umask) and migrated where needed.
 *
 * @param path a file, or {@link MEMORY}
 * @throws DatabaseRefused when the file is not a database, belongs to another program or to a newer version
 */
export function openDatabase(path: string): Database {
  if (path !== MEMORY) mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  return withReasons(path, () => {
    const db = connect(path);
    try {
      refuseForeign(db, path);
      migrate(db);
      return db;
    } catch (error) {
      db.close();
      throw error;
    }
  });
}

/** Opens a database that exists and that this version made; for commands that look at one. */
export function openExistingDatabase(path: string): Database {
  if (!existsSync(path)) throw new DatabaseRefused(`${path} does not exist.`);
  return withReasons(path, () => {
    const db = new Database(path, { readwrite: true, create: false, strict: true });
    try {
      db.run(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`);
      if (pragma(db, "application_id") !== APPLICATION_ID) {
        throw new DatabaseRefused(`${path} is not a database of this service.`);
      }
      refuseForeign(db, path);
      return db;
    } catch (error) {
      db.close();
      throw error;
    }
  });
}

/** A connection with the settings that every one of ours has. */
export function connect(path: string): Database {
  const db = new Database(path, { readwrite: true, create: true, strict: true });
  try {
    // busy_timeout first: without it a second process fails at journal_mode.
    db.run(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`);
    db.run("PRAGMA journal_mode = WAL");
    // An acknowledged write survives a power cut; NORMAL would lose the last commits.
    db.run("PRAGMA synchronous = FULL");
    db.run("PRAGMA foreign_keys = ON");
    db.run("PRAGMA trusted_schema = OFF");
  } catch (error) {
    db.close();
    throw error;
  }
  return db;
}

export function schemaVersion(db: Database): number {
  return pragma(db, "user_version");
}

/** Brings the schema to this version, in one transaction with the count of its steps. */
function migrate(db: Database): void {
  db.transaction(() => {
    for (let step = schemaVersion(db); step < MIGRATIONS.length; step += 1) {
      db.run(MIGRATIONS[step] ?? "");
      db.run(`PRAGMA user_version = ${step + 1}`);
    }
    db.run(`PRAGMA application_id = ${APPLICATION_ID}`);
  }).immediate();
}

function refuseForeign(db: Database, path: string): void {
  const version = schemaVersion(db);
  if (version > MIGRATIONS.length) {
    throw new DatabaseRefused(
      `${path} was written by a newer version (schema ${version}; this one knows ${MIGRATIONS.length}). Start that version, or restore a backup from before it.`,
    );
  }
  const owner = pragma(db, "application_id");
  const isOurs = owner === APPLICATION_ID;
  const isEmpty = db.query("SELECT 1 FROM sqlite_schema LIMIT 1").get() === null;
  if (!isOurs && !isEmpty) {
    throw new DatabaseRefused(
      `${path} is the database of another program. Name another file in DATABASE_URL.`,
    );
  }
}

function pragma(db: Database, name: string): number {
  const row = db.query<Record<string, number>, []>(`PRAGMA ${name}`).get();
  return row?.[name] ?? 0;
}

function withReasons<T>(path: string, open: () => T): T {
  try {
    return open();
  } catch (error) {
    if (!(error instanceof SQLiteError)) throw error;
    throw new DatabaseRefused(`${path} can't be opened: ${reason(error)}`, { cause: error });
  }
}

function reason(error: SQLiteError): string {
  const code = error.code ?? "";
  if (code.startsWith("SQLITE_CANTOPEN")) return "it or its directory is missing, or may not be written.";
  if (code.startsWith("SQLITE_NOTADB"))
    return "it is not a SQLite database. Name another file in DATABASE_URL.";
  if (code.startsWith("SQLITE_CORRUPT"))
    return "it is damaged. Restore a backup with `restore FILE --force`.";
  if (code.startsWith("SQLITE_BUSY")) return "another process holds its lock.";
  if (code.startsWith("SQLITE_FULL")) return "the disk is full.";
  if (code.startsWith("SQLITE_READONLY")) return "it or its directory may not be written.";
  return `${error.message} (${code}).`;
}

const UNAVAILABLE = [
  "SQLITE_BUSY",
  "SQLITE_LOCKED",
  "SQLITE_FULL",
  "SQLITE_IOERR",
  "SQLITE_CANTOPEN",
  "SQLITE_NOTADB",
  "SQLITE_CORRUPT",
  "SQLITE_READONLY",
  "SQLITE_PROTOCOL",
  "SQLITE_NOMEM",
  "SQLITE_PERM",
];

/** The error as the store's interface knows it: what the engine can't help becomes StoreUnavailable, a bug stays. */
export function asStoreError(error: unknown): unknown {
  const code = error instanceof SQLiteError ? (error.code ?? "") : "";
  if (!UNAVAILABLE.some((prefix) => code.startsWith(prefix))) return error;
  return new StoreUnavailable(code, { cause: error });
}
