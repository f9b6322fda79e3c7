import { Database, SQLiteError } from "bun:sqlite";
import {
  closeSync,
  existsSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
} from "node:fs";
import { dirname } from "node:path";
import { DatabaseRefused, openExistingDatabase, schemaVersion } from "./sqlite-database.ts";

/** What a look at a database found. */
export type CheckReport = {
  readonly faults: readonly string[];
  readonly customers: number;
  readonly tokens: number;
  readonly schemaVersion: number;
};

const FAULTS_MAX = 20;
const DAMAGE = ["SQLITE_CORRUPT", "SQLITE_NOTADB", "SQLITE_IOERR", "SQLITE_ERROR"];

/**
 * Looks at every page and every constraint.
 *
 * @throws DatabaseRefused when it can't be opened as one of ours, or can't be looked at now (another process
 *   holds its lock): that says nothing of its soundness
 */
export function checkDatabase(path: string): CheckReport {
  const db = openExistingDatabase(path);
  try {
    const faults = db
      .query<{ integrity_check: string }, []>(`PRAGMA integrity_check(${FAULTS_MAX})`)
      .all()
      .map((row) => row.integrity_check)
      .filter((line) => line !== "ok");
    const count = (table: string): number =>
      db.query<{ n: number }, []>(`SELECT count(*) AS n FROM ${table}`).get()?.n ?? 0;
    return {
      faults,
      customers: count("customers"),
      tokens: count("tokens"),
      schemaVersion: schemaVersion(db),
    };
  } catch (error) {
    if (!(error instanceof SQLiteError)) throw error;
    const code = error.code ?? "";
    if (!DAMAGE.some((prefix) => code.startsWith(prefix))) {
      throw new DatabaseRefused(`${path} can't be checked now: ${error.message}.`, { cause: error });
    }
    // A page too damaged to be read ends the check, and is its finding.
    return { faults: [error.message], customers: 0, tokens: 0, schemaVersion: 0 };
  } finally {
    db.close();
  }
}

/**
 * A consistent copy while the service runs. The copy is complete and on the disk before it gets its name.
 *
 * @throws DatabaseRefused when `to` exists, or `from` is not a database of ours
 */
export function backupDatabase(from: string, to: string): void {
  if (existsSync(to)) throw existsAlready(to);
  // Of this process alone: two backups at once must not write into one file.
  const partial = `${to}.${process.pid}.partial`;
  try {
    // Of a process that was killed and had this number: in a container the numbers are always the same.
    removeDatabase(partial);
    copyDatabase(from, partial);
    giveName(partial, to);
    syncFile(dirname(to));
  } catch (error) {
    throw cantBeWritten(to, error);
  } finally {
    removeDatabase(partial);
  }
}

/**
 * Puts a backup in the place of the database, with -wal and -shm as one.
 *
 * @throws DatabaseRefused when the backup is not sound, when a process has the database open, or when there
 *   is a database and `isForced` is not set
 */
export function restoreDatabase(backup: string, database: string, isForced: boolean): void {
  const { faults } = checkDatabase(backup);
  if (faults.length > 0) {
    throw new DatabaseRefused(
      `${backup} is damaged (${faults[0]}); nothing was changed. Restore another backup.`,
    );
  }
  if (existsSync(database) && !isForced) {
    throw new DatabaseRefused(
      `${database} exists; restoring replaces all of it. Make a backup of it first, then repeat with --force.`,
    );
  }
  if (existsSync(database) && isOpenInAnyProcess(database)) throw inUse(database);
  const incoming = `${database}.restoring`;
  try {
    mkdirSync(dirname(database), { recursive: true, mode: 0o700 });
    removeDatabase(incoming);
    // Not a copy of the file, which would leave out what a backup still has in a -wal of its own.
    copyDatabase(backup, incoming);
    const release = existsSync(database) ? holdAlone(database) : () => {};
    try {
      // What is left of the old one would be played into the new one.
      for (const suffix of ["-wal", "-shm", "-journal"]) rmSync(`${database}${suffix}`, { force: true });
      renameSync(incoming, database);
      syncFile(dirname(database));
    } finally {
      release();
    }
  } catch (error) {
    throw cantBeWritten(database, error);
  } finally {
    removeDatabase(incoming);
  }
}

/** Copies a database, with what is in its -wal, to a file that does not exist, and onto the disk. */
function copyDatabase(from: string, to: string): void {
  const db = openExistingDatabase(from);
  try {
    db.run("VACUUM INTO ?", [to]);
  } finally {
    db.close();
  }
  syncFile(to);
}

/** Not by a rename alone, which would replace a file made since. */
function giveName(partial: string, name: string): void {
  try {
    linkSync(partial, name);
  } catch {
    // The name is taken; or the file system has no hard links (FAT, some network ones).
    if (existsSync(name)) throw existsAlready(name);
    renameSync(partial, name);
  }
}

function existsAlready(file: string): DatabaseRefused {
  return new DatabaseRefused(`${file} exists already; a backup never overwrites. Name another file.`);
}

function cantBeWritten(file: string, error: unknown): unknown {
  if (error instanceof DatabaseRefused || !(error instanceof Error) || !("code" in error)) return error;
  return new DatabaseRefused(`${file} can't be written: ${error.message}.`, { cause: error });
}

/**
 * Holds the file's exclusive lock, which only the last one that has it open can get.
 *
 * @returns what gives it back
 */
function holdAlone(database: string): () => void {
  const db = new Database(database, { readwrite: true, create: false });
  try {
    db.run("PRAGMA busy_timeout = 0");
    // Leaving WAL needs to be alone, folds the WAL in and removes it.
    db.run("PRAGMA journal_mode = DELETE");
    db.run("BEGIN EXCLUSIVE");
    return () => db.close();
  } catch (error) {
    db.close();
    const code = (error as { code?: string }).code ?? "";
    if (code.startsWith("SQLITE_BUSY") || code.startsWith("SQLITE_LOCKED")) throw inUse(database);
    // Too damaged to be locked, which may be why it is being replaced: who has it open was asked of the system.
    return () => {};
  }
}

function inUse(database: string): DatabaseRefused {
  return new DatabaseRefused(
    `${database} is open in a running process. Stop the service first, then restore.`,
  );
}

/** Asks Linux's /proc, which also answers for a file too damaged for SQLite's locks; elsewhere it answers no. */
function isOpenInAnyProcess(file: string): boolean {
  if (!existsSync("/proc/self/fd")) return false;
  const { dev, ino } = statSync(file);
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .flatMap(
      (pid) => unlessGone(() => readdirSync(`/proc/${pid}/fd`).map((fd) => `/proc/${pid}/fd/${fd}`)) ?? [],
    )
    .map((fd) => unlessGone(() => statSync(fd)))
    .some((opened) => opened?.dev === dev && opened.ino === ino);
}

/** What /proc says, or null of a process or an open file that has just gone or is not ours to see. */
function unlessGone<T>(look: () => T): T | null {
  try {
    return look();
  } catch {
    return null;
  }
}

function removeDatabase(path: string): void {
  for (const suffix of ["", "-wal", "-shm", "-journal"]) rmSync(`${path}${suffix}`, { force: true });
}

function syncFile(path: string): void {
  const fd = openSync(path, "r");
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}
