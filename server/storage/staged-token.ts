import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { syncFile } from "./synced-file.ts";

/**
 * Puts the token on the disk under a temporary name. A valid token that is stored nowhere
 * would lock its owner out, so this comes before the commit, and {@link publish} after it.
 */
export function stage(tokenFile: string, token: string): void {
  rmSync(stagedOf(tokenFile), { force: true });
  writeFileSync(stagedOf(tokenFile), `${token}\n`, { mode: 0o600, flag: "wx", flush: true });
  // The file's name, too, must outlive a power cut.
  syncFile(dirname(tokenFile));
}

/**
 * @returns the token of a first start that was cut off between its commit and {@link publish}; null where
 *   there is none, or where another service publishes it at this moment
 */
export function stagedToken(tokenFile: string): string | null {
  try {
    return readFileSync(stagedOf(tokenFile), "utf8").trim();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
}

/** Gives the staged file its name. Another service that started at the same moment may have done it. */
export function publish(tokenFile: string): void {
  try {
    renameSync(stagedOf(tokenFile), tokenFile);
  } catch (error) {
    if (!existsSync(tokenFile)) throw error;
  }
  syncFile(dirname(tokenFile));
}

function stagedOf(tokenFile: string): string {
  return `${tokenFile}.partial`;
}
