import { closeSync, openSync, statSync } from "node:fs";
import { UsageError } from "../outcome/failure.ts";

/**
 * Makes a file for the operator alone where none is. Something else of that name is a UsageError: opening a pipe waits
 * for its other end and holds back signals meanwhile, and a device keeps nothing.
 * @param what it is, for the message. Throws system errors.
 */
export function makeRegularFile(path: string, what: string, hint: string): void {
  if (statSync(path, { throwIfNoEntry: false })?.isFile() === false)
    throw new UsageError(`${what} ${path} is not a regular file; nothing was sent`, hint);
  closeSync(openSync(path, "a", 0o600));
}
