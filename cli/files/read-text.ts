import { promises, readFileSync, statSync } from "node:fs";

/**
 * The text of a file or a pipe. Opening a pipe waits for its other end, and a synchronous opening would hold back
 * signals meanwhile. A plain file never waits, and takes less time to be read at once. Throws system errors.
 */
export async function readText(path: string): Promise<string> {
  return statSync(path).isFile() ? readFileSync(path, "utf8") : await promises.readFile(path, "utf8");
}
