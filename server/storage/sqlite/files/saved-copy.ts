import { statSync } from "node:fs";
import { CommandRefused } from "../../../domain/command-refused.ts";

/** Where a service saves its database when the file has lost its last name. */
export function savedCopyOf(path: string): string {
  return `${path}.saved`;
}

export function isSaved(path: string): boolean {
  return statSync(savedCopyOf(path), { throwIfNoEntry: false })?.isFile() === true;
}

/**
 * A database that stands where another one was deleted or replaced lacks that one's last writes.
 *
 * @throws CommandRefused while the copy of the other one is there
 */
export function refuseSavedCopy(path: string): void {
  if (!isSaved(path)) return;
  const saved = savedCopyOf(path);
  throw new CommandRefused(
    `${saved} exists: a service saves its database there when ${path} is deleted or replaced. Stop every service, bring it back with \`restore ${saved} --force\`, and remove that file; to go on without its last writes, only remove it.`,
  );
}
