import type { Database } from "bun:sqlite";
import { mkdtempSync, readdirSync, rmSync, type Stats, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { syncFile } from "../../synced-file.ts";
import { giveName } from "./backup.ts";
import { savedCopyOf } from "./saved-copy.ts";

/**
 * Whether a file that this process has open was deleted, or another one was renamed over it: what it
 * holds is gone once it is closed.
 */
export function hasNoName(is: (file: Stats) => boolean): boolean {
  return openFiles().some((file) => file.nlink === 0 && is(file));
}

function openFiles(): Stats[] {
  return readdirSync("/dev/fd").flatMap((descriptor) => {
    try {
      return [statSync(join("/dev/fd", descriptor))];
    } catch {
      return []; // closed meanwhile, such as the one that lists them
    }
  });
}

/**
 * Copies what a connection has open, with its log, to the place of {@link savedCopyOf}. It is complete and on the disk
 * before it gets its name. One that is there already stays: all connections to a file save the same, since none of
 * them writes any more.
 *
 * @throws an Error of SQLite or the system where it cannot be written
 */
export function saveCopy(db: Database, path: string): void {
  const name = savedCopyOf(path);
  if (isSaved(path)) return;
  const directory = mkdtempSync(`${name}.`);
  try {
    const copy = join(directory, "copy.db");
    db.run("VACUUM INTO ?", [copy]);
    syncFile(copy);
    giveName(copy, name);
    syncFile(dirname(name));
  } catch (error) {
    if (!isSaved(path)) throw error;
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

function isSaved(path: string): boolean {
  return statSync(savedCopyOf(path), { throwIfNoEntry: false })?.isFile() === true;
}
