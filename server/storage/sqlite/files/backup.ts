import { existsSync, linkSync, renameSync, rmSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { CommandRefused } from "../../../domain/command-refused.ts";
import { LOCK_WAIT_MS } from "../../storage.ts";
import { syncFile } from "../../synced-file.ts";
import { type OnEnd, partialBackupOf, removeStaleBackups, withPartialCopy } from "./partial-copy.ts";
import { refuseSecondName } from "./second-name.ts";
import { openExistingDatabase } from "./sqlite-database.ts";
import { vacuumInto } from "./vacuum-thread.ts";

/**
 * Makes a consistent copy while the service runs. It is complete and on the disk before it gets its name.
 *
 * @throws CommandRefused when `to` exists, its directory does not exist, or `from` is not a database of ours or
 *   has a second name
 */
export async function backupDatabase(
  from: string,
  to: string,
  lockWaitMs?: number,
  onEnd?: OnEnd,
): Promise<void> {
  refuseSecondName(from);
  const directory = dirname(resolve(to));
  if (!existsSync(directory)) {
    throw new CommandRefused(`The directory ${directory} does not exist. Create it, or name another file.`);
  }
  if (existsSync(to)) throw existsAlready(to);
  try {
    removeStaleBackups(to);
    await withPartialCopy(partialBackupOf(to), onEnd, async (partial) => {
      await copyDatabase(from, partial, lockWaitMs);
      giveName(partial, to);
      syncFile(directory);
    });
  } catch (error) {
    throw cantBeWritten(to, error);
  }
}

/** Copies a database, with what is in its -wal, to a new file, and waits until that is on the disk. */
export async function copyDatabase(from: string, to: string, lockWaitMs = LOCK_WAIT_MS): Promise<void> {
  // Refuses what is no database of ours.
  openExistingDatabase(from, lockWaitMs).close();
  try {
    await vacuumInto(from, to, lockWaitMs);
  } catch (error) {
    const { code = "", message } = error as NodeJS.ErrnoException;
    if (!code.startsWith("SQLITE_CORRUPT")) throw error;
    throw new CommandRefused(`${from} is damaged: ${message}. Restore a backup.`, { cause: error });
  }
}

/** Links instead of renaming: a rename would replace a file that was made meanwhile. */
export function giveName(partial: string, name: string): void {
  try {
    linkSync(partial, name);
  } catch {
    // Either the name is taken, or the file system has no hard links (FAT, some network file systems).
    if (existsSync(name)) throw existsAlready(name);
    renameSync(partial, name);
  }
}

function existsAlready(file: string): CommandRefused {
  return new CommandRefused(`${file} exists already; a backup never overwrites. Name another file.`);
}

export function cantBeWritten(file: string, error: unknown): unknown {
  if (error instanceof CommandRefused || !(error instanceof Error) || !("code" in error)) return error;
  return new CommandRefused(`${file} can't be written: ${error.message}.`, { cause: error });
}

export function removeDatabase(path: string): void {
  for (const suffix of ["", "-wal", "-shm", "-journal"]) rmSync(`${path}${suffix}`, { force: true });
}
