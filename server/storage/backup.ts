import { Database } from "bun:sqlite";
import {
  closeSync,
  copyFileSync,
  existsSync,
  fsyncSync,
  openSync,
  readdirSync,
  readlinkSync,
  realpathSync,
  renameSync,
  rmSync,
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

/** Looks at every page and every constraint. @throws DatabaseRefused when it can't be opened as one of ours */
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
    // A page too damaged to be checked ends the check, and is its finding.
    return { faults: [(error as Error).message], customers: 0, tokens: 0, schemaVersion: 0 };
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
  if (existsSync(to))
    throw new DatabaseRefused(`${to} exists already; a backup never overwrites. Name another file.`);
  const db = openExistingDatabase(from);
  const partial = `${to}.partial`;
  try {
    rmSync(partial, { force: true });
    db.query("VACUUM INTO ?").run(partial);
  } catch (error) {
    rmSync(partial, { force: true });
    throw new DatabaseRefused(`${to} can't be written: ${(error as Error).message}.`, { cause: error });
  } finally {
    db.close();
  }
  syncFile(partial);
  renameSync(partial, to);
  syncFile(dirname(to));
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
  removeDatabase(incoming);
  copyFileSync(backup, incoming);
  syncFile(incoming);
  const release = existsSync(database) ? holdAlone(database) : () => {};
  try {
    for (const suffix of ["-wal", "-shm"]) rmSync(`${database}${suffix}`, { force: true });
    renameSync(incoming, database);
    syncFile(dirname(database));
  } finally {
    release();
    removeDatabase(incoming);
  }
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
  const real = realpathSync(file);
  const names = new Set([real, `${real}-wal`, `${real}-shm`]);
  for (const pid of readdirSync("/proc").filter(
    (name) => /^\d+$/.test(name) && Number(name) !== process.pid,
  )) {
    try {
      const directory = `/proc/${pid}/fd`;
      if (readdirSync(directory).some((fd) => names.has(readlinkSync(`${directory}/${fd}`)))) return true;
    } catch {
      // Another user's process, or one that has just ended.
    }
  }
  return false;
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
