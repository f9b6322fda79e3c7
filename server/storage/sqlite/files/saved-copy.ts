import { existsSync } from "node:fs";
import { CommandRefused } from "../../../domain/command-refused.ts";

/** Where a service saves its database when the file has lost its last name. */
export function savedCopyOf(path: string): string {
  return `${path}.saved`;
}

/**
 * A database that stands where another one was deleted or replaced lacks that one's last writes.
 *
 * @throws CommandRefused while the copy of the other one is there
 */
export function refuseSavedCopy(path: string): void {
  if (!existsSync(savedCopyOf(path))) return;
  throw new CommandRefused(
    `${path} was deleted or replaced under a running service, which saved all of it to ${savedCopyOf(path)}. Bring it back with \`restore ${savedCopyOf(path)} --force\`, and remove that file; to go on without its last writes, remove it only.`,
  );
}
