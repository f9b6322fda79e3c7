import { Database } from "bun:sqlite";
import {
  chownSync,
  existsSync,
  readdirSync,
  readlinkSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import { CommandRefused } from "../../../domain/command-refused.ts";
import { syncFile } from "../../synced-file.ts";
import { cantBeWritten, copyDatabase } from "./backup.ts";
import { checkDatabase } from "./check.ts";
import { type Erasure, erasuresIn, heldIn } from "./erasures.ts";
import { type OnEnd, withPartialCopy } from "./partial-copy.ts";
import { refuseSecondName } from "./second-name.ts";
import { requireDirectory } from "./sqlite-database.ts";

/**
 * Puts a backup in the place of the database, with -wal and -shm as one.
 *
 * @returns the erased customers whom the backup holds again, as far as the replaced database says; null where it
 *   can't be read
 * @throws CommandRefused when the backup is not sound, when a process has the database open or it has a second
 *   name, or when there is a database and `isForced` is not set
 */
export async function restoreDatabase(
  backup: string,
  database: string,
  isForced: boolean,
  lockWaitMs?: number,
  onEnd?: OnEnd,
): Promise<readonly Erasure[] | null> {
  const { faults } = checkDatabase(backup, lockWaitMs);
  if (faults.length > 0) {
    throw new CommandRefused(
      `${backup} is damaged (${faults[0]}); nothing was changed. Restore another backup.`,
    );
  }
  if (existsSync(database) && !isForced) {
    throw new CommandRefused(
      `${database} exists; restoring replaces all of it. Make a backup of it first, then repeat with --force.`,
    );
  }
  // The service would refuse it. A backup may have several, as in snapshots that share unchanged files.
  refuseSecondName(database);
  const opened = openInOthers();
  if (existsSync(database) && isAmong(opened, database)) throw inUse(database);
  // It would save again what it has, over what is written here after the restore.
  if (isAmongDeleted(opened, database)) throw inUse(database);
  const erasures = existsSync(database) ? erasuresIn(database, lockWaitMs) : null;
  // Before the backup is in its place: what fails afterwards must not hide that it is.
  const held = erasures === null ? null : heldIn(backup, erasures, lockWaitMs);
  try {
    requireDirectory(database);
    await withPartialCopy(`${database}.restoring`, onEnd, async (incoming) => {
      // Not a copy of the file, which would leave out what a backup still has in a -wal of its own.
      await copyDatabase(backup, incoming, lockWaitMs);
      keepOwner(incoming, database);
      const release = existsSync(database) ? holdAlone(database) : () => {};
      try {
        // What is left of the old one would be played into the new one.
        for (const suffix of ["-wal", "-shm", "-journal"]) rmSync(`${database}${suffix}`, { force: true });
        renameSync(incoming, database);
        syncFile(dirname(database));
      } finally {
        release();
      }
    });
    return held;
  } catch (error) {
    throw cantBeWritten(database, error);
  }
}

/** Root restores, but the service has a user of its own, who could not open root's file. */
function keepOwner(incoming: string, database: string): void {
  if (process.getuid?.() !== 0) return;
  const { uid, gid } = statSync(existsSync(database) ? database : dirname(database));
  chownSync(incoming, uid, gid);
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
    // Too damaged to be locked, which may be why it is being
    // replaced: who has it open was asked of the system.
    return () => {};
  }
}

function inUse(database: string): CommandRefused {
  return new CommandRefused(
    `${database} is open in a running process. Stop the service first, then restore.`,
  );
}

function isAmong(descriptors: readonly string[], file: string): boolean {
  const { dev, ino } = statSync(file);
  return descriptors
    .map((fd) => unlessGone(() => statSync(fd)))
    .some((opened) => opened?.dev === dev && opened.ino === ino);
}

/** Whether one is of a file that had this name, and has none any more (proc_pid_fd(5)). */
function isAmongDeleted(descriptors: readonly string[], file: string): boolean {
  const directory = unlessGone(() => realpathSync(dirname(file)));
  if (directory === null) return false;
  const name = `${join(directory, basename(file))} (deleted)`;
  return descriptors.some((fd) => unlessGone(() => readlinkSync(fd)) === name);
}

/**
 * The open files of all other processes, as paths in Linux's /proc, which also answers for a file too damaged for
 * SQLite's locks; elsewhere none.
 */
function openInOthers(): string[] {
  if (!existsSync("/proc/self/fd")) return [];
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .flatMap(
      (pid) => unlessGone(() => readdirSync(`/proc/${pid}/fd`).map((fd) => `/proc/${pid}/fd/${fd}`)) ?? [],
    );
}

/** What /proc says, or null of a process or an open file that has just gone or is not ours to see. */
function unlessGone<T>(look: () => T): T | null {
  try {
    return look();
  } catch {
    return null;
  }
}
