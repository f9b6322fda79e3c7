import { closeSync, fsyncSync, openSync } from "node:fs";

/** Waits until a file is on the disk; of a directory, the names of its files. */
export function syncFile(path: string): void {
  const fd = openSync(path, "r");
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}
