import { promises, readFileSync, statSync } from "node:fs";
import { checkedUtf8 } from "./utf-8.ts";

/**
 * The text of a file or a pipe, in UTF-8 or a UsageError. Opening a pipe waits for its other end, and a synchronous opening
 * would hold back signals meanwhile. A plain file never waits, and takes less time to be read at once. Throws system errors.
 */
export async function readText(path: string): Promise<string> {
  return checkedUtf8(await readBytes(path), path);
}

/** The same of a PEM file, whose comments may be in any encoding. */
export async function readPem(path: string): Promise<string> {
  return (await readBytes(path)).toString("latin1");
}

async function readBytes(path: string): Promise<Buffer> {
  return statSync(path).isFile() ? readFileSync(path) : await promises.readFile(path);
}
