import { lstatSync, readFileSync, realpathSync, statSync } from "node:fs";
import { CommandRefused } from "../../../domain/command-refused.ts";

/**
 * SQLite finds the write-ahead log and its index, which holds the locks, by the name of the database. A file
 * under two names has two of each, so a process does not see what others write under the other name,
 * and overwrites it. None of SQLite's checks finds that.
 *
 * @throws CommandRefused when the file has a further hard link, or is a mount point, whose other name is elsewhere
 */
export function refuseSecondName(path: string): void {
  const file = statSync(path, { throwIfNoEntry: false });
  if (file?.isFile() !== true) return;
  if (file.nlink > 1) {
    throw new CommandRefused(
      `${path} has ${file.nlink} names (hard links), and SQLite would keep a log for each, which damages the database. Remove the others (\`find DIRECTORY -samefile ${path}\` lists them), or name a copy.`,
    );
  }
  if (isMountPoint(path, mountsOfThisProcess())) {
    throw new CommandRefused(
      `${path} is a mount point, and SQLite would keep a log here and another beside the mounted file, which damages the database. Mount the directory of the file instead.`,
    );
  }
}

/** SQLite keeps -wal and -shm beside the file that a link leads to, where none of our checks looks. */
export function refuseLink(path: string): void {
  if (!lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink()) return;
  throw new CommandRefused(`${path} is a symbolic link. Name the file that it leads to in DATABASE_URL.`);
}

/** @param mounts as /proc/self/mountinfo lists them (proc_pid_mountinfo(5)): the fifth field is the mount point */
export function isMountPoint(path: string, mounts: string): boolean {
  const real = realpathSync(path);
  return mounts.split("\n").some((line) => unescaped(line.split(" ")[4] ?? "") === real);
}

/** Blanks, line ends and backslashes stand there as a backslash and three octal digits. */
function unescaped(field: string): string {
  return field.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)));
}

/** Linux lists them; no other system is asked. */
function mountsOfThisProcess(): string {
  try {
    return readFileSync("/proc/self/mountinfo", "utf8");
  } catch {
    return "";
  }
}
