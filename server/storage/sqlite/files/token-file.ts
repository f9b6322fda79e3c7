import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join, resolve } from "node:path";
import { MEMORY } from "./sqlite-url.ts";

/**
 * The file of the admin token, absolute, so that a line that reads it can be pasted anywhere.
 * Beside the database and named after it, so that two databases in one directory have two;
 * for a database in memory in a directory of its own, which goes when the process ends.
 */
export function tokenFileOf(databasePath: string): string {
  if (databasePath !== MEMORY) {
    const name = basename(databasePath).replace(/\.(db|sqlite3?)$/, "");
    return join(dirname(resolve(databasePath)), name === "customers" ? "admin.token" : `${name}.admin.token`);
  }
  const directory = mkdtempSync(join(tmpdir(), "customers-"));
  process.on("exit", () => rmSync(directory, { recursive: true, force: true }));
  return join(directory, "admin.token");
}
