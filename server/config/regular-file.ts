import { readFileSync, statSync } from "node:fs";

/**
 * Reads a text file. Anything else, such as a named pipe or a device, might never end, and hold up a running service.
 *
 * @throws Error
 */
export function readRegularFile(path: string): string {
  if (!statSync(path).isFile()) throw new Error(`${path} is not a regular file`);
  return readFileSync(path, "utf8");
}
