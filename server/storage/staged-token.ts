import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";

/**
 * Puts the token on the disk under a temporary name. A valid token that is stored nowhere
 * would lock its owner out, so this comes before the commit, and {@link publish} after it.
 */
export function stage(tokenFile: string, token: string): void {
  rmSync(stagedOf(tokenFile), { force: true });
  writeFileSync(stagedOf(tokenFile), `${token}\n`, { mode: 0o600, flag: "wx", flush: true });
}

/** @returns the token of a first start that was cut off between its commit and {@link publish}, or null */
export function stagedToken(tokenFile: string): string | null {
  return existsSync(stagedOf(tokenFile)) ? readFileSync(stagedOf(tokenFile), "utf8").trim() : null;
}

/** Gives the staged file its name. Another service that started at the same moment may have done it. */
export function publish(tokenFile: string): void {
  try {
    renameSync(stagedOf(tokenFile), tokenFile);
  } catch (error) {
    if (!existsSync(tokenFile)) throw error;
  }
}

function stagedOf(tokenFile: string): string {
  return `${tokenFile}.partial`;
}
