import { existsSync, mkdirSync, readdirSync, rmSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";

/** Registers a cleanup that runs before a signal ends this process. @returns what unregisters it */
export type OnEnd = (clean: () => void) => () => void;

/** SQLite makes at most a database and a journal, so a third try finds an empty directory. */
const REMOVALS_MAX = 3;

/**
 * Makes a directory, lets `work` write a database in it, and removes it: also where a signal ends the process.
 * A directory, not a file: SQLite in another thread may make a file after we removed one, but none in a
 * directory that is gone.
 *
 * @param onEnd left undefined where no signal has to be handled
 * @param work takes the name for the database
 */
export async function withPartialCopy<T>(
  directory: string,
  onEnd: OnEnd | undefined,
  work: (database: string) => Promise<T>,
): Promise<T> {
  const forget = onEnd?.(() => remove(directory));
  try {
    // A killed process may have left one under the same process id: in a container the ids repeat.
    remove(directory);
    mkdirSync(directory, { mode: 0o700 });
    return await work(join(directory, "copy.db"));
  } finally {
    forget?.();
    remove(directory);
  }
}

/** The name holds the process id: two backups at once must not write into one file. */
export function partialBackupOf(to: string): string {
  return `${to}.${process.pid}.partial`;
}

/** Removes what processes that were killed left of copies to this name. */
export function removeStaleBackups(to: string): void {
  const directory = dirname(resolve(to));
  const prefix = `${basename(to)}.`;
  for (const name of readdirSync(directory)) {
    const pid = name.startsWith(prefix)
      ? /^(?:\d+\.)?(\d+)\.partial$/.exec(name.slice(prefix.length))?.[1]
      : undefined;
    if (pid !== undefined && !isRunning(Number(pid))) remove(join(directory, name));
  }
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== "ESRCH";
  }
}

function remove(directory: string): void {
  for (let tries = 1; existsSync(directory); tries += 1) {
    try {
      rmSync(directory, { recursive: true, force: true });
    } catch (error) {
      if (tries === REMOVALS_MAX) throw error;
    }
  }
}
