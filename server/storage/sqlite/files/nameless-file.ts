import type { Database } from "bun:sqlite";
import { fstatSync, mkdirSync, readdirSync, rmSync, type Stats } from "node:fs";
import { dirname, join } from "node:path";
import { threadId } from "node:worker_threads";
import { syncFile } from "../../synced-file.ts";
import { giveName } from "./backup.ts";
import { partialBackupOf, removeStaleBackups } from "./partial-copy.ts";
import { isSaved, savedCopyOf } from "./saved-copy.ts";

/**
 * Whether a file that this process has open was deleted, or another one was renamed over it: what it
 * holds is gone once it is closed.
 *
 * @param is whether a file is that one
 * @returns a look that asks the system for one descriptor, once it is found
 */
export function namelessLook(is: (file: Stats) => boolean): () => boolean {
  let descriptor: number | undefined;
  return () => {
    const found = descriptor === undefined ? null : statOf(descriptor);
    if (found === null || !is(found)) descriptor = openDescriptors().find((each) => isAt(each, is));
    return descriptor !== undefined && statOf(descriptor)?.nlink === 0;
  };
}

function openDescriptors(): number[] {
  return readdirSync("/dev/fd").map(Number);
}

function isAt(descriptor: number, is: (file: Stats) => boolean): boolean {
  const file = statOf(descriptor);
  return file !== null && is(file);
}

function statOf(descriptor: number): Stats | null {
  try {
    return fstatSync(descriptor);
  } catch {
    return null; // closed meanwhile, such as the one that lists them
  }
}

/** A copy that cannot be written holds this thread up for a while, and is not tried for each request. */
const SAVE_AGAIN_MS = 5000;
/** Why a database could not be saved, by its path, and when it is tried again. */
const faults = new Map<string, { readonly why: string; readonly againAt: number }>();

/**
 * Copies what a connection has open, with its log, to the place of {@link savedCopyOf}. It is complete and on the disk
 * before it gets its name. One that is there already stays: all connections to a file save the same, since none of
 * them writes any more.
 *
 * @returns null, or why it cannot be saved now
 */
export function saveCopy(db: Database, path: string): string | null {
  if (isSaved(path)) return null;
  const fault = faults.get(path);
  if (fault !== undefined && performance.now() < fault.againAt) return fault.why;
  try {
    writeCopy(db, path);
    faults.delete(path);
    return null;
  } catch (error) {
    if (isSaved(path)) return null;
    const why = (error as Error).message;
    faults.set(path, { why, againAt: performance.now() + SAVE_AGAIN_MS });
    return why;
  }
}

/** Lets the next {@link saveCopy} try at once: it is the last one before the connection is closed. */
export function saveAtOnce(path: string): void {
  faults.delete(path);
}

function writeCopy(db: Database, path: string): void {
  const name = savedCopyOf(path);
  removeStaleBackups(name);
  // Another thread of this process may save it at the same time.
  const directory = partialBackupOf(`${name}.${threadId}`);
  rmSync(directory, { recursive: true, force: true });
  mkdirSync(directory, { mode: 0o700 });
  try {
    const copy = join(directory, "copy.db");
    db.run("VACUUM INTO ?", [copy]);
    syncFile(copy);
    giveName(copy, name);
    syncFile(dirname(name));
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}
