/** The database that a command works on: as its settings name it, opened and closed. */
import { CommandRefused } from "../../domain/command-refused.ts";
import { maskPassword } from "../../domain/text/mask-password.ts";
import {
  databaseExists,
  isInMemory,
  MEMORY_URL,
  openStorage,
} from "../../storage/database-url/open-storage.ts";
import { isPostgresUrl, parsePostgresUrl } from "../../storage/postgres/connection/postgres-url.ts";
import { sqlitePath } from "../../storage/sqlite/files/sqlite-url.ts";
import type { Storage, StorageOptions } from "../../storage/storage.ts";
import { type CommandOptions, settingsOf } from "./setting-options.ts";

/** The settings that name a database, and say how to reach it. */
export const DATABASE_SETTINGS = ["databaseUrl", "databaseCa", "lockWait"] as const;

export type NamedDatabase = { readonly databaseUrl: string; readonly storage: StorageOptions };

export function databaseOf(options: CommandOptions): NamedDatabase {
  const { databaseUrl, databaseCa, lockWait } = settingsOf(options, DATABASE_SETTINGS);
  const storage = { caFile: databaseCa, lockWaitMs: lockWait * 1000 };
  if (!isInMemory(databaseUrl)) return { databaseUrl, storage };
  throw new CommandRefused(`${MEMORY_URL} lives inside a running service. Name the file in DATABASE_URL.`);
}

/**
 * The database of a command that creates none: in the wrong
 * directory, or mistyped, it would look at an empty one.
 */
export async function existingDatabaseOf(options: CommandOptions): Promise<NamedDatabase> {
  const named = databaseOf(options);
  if (await databaseExists(named.databaseUrl, named.storage)) return named;
  const shown = isPostgresUrl(named.databaseUrl)
    ? `A schema of this service in ${maskPassword(named.databaseUrl)}`
    : sqlitePath(named.databaseUrl);
  throw new CommandRefused(`${shown} does not exist. Name the database of the service in DATABASE_URL.`);
}

/** Opens a database for a command, and closes it after its work. */
export async function withStorage<T>(
  { databaseUrl, storage: options }: NamedDatabase,
  work: (storage: Storage) => Promise<T>,
): Promise<T> {
  const storage = await openStorage(databaseUrl, options);
  try {
    return await work(storage);
  } finally {
    await storage.close();
  }
}

/**
 * @param variable where the password may stand instead
 * @throws CommandRefused for a URL on the command line that holds a password: other users see it
 */
export function refuseVisiblePassword(flag: string, databaseUrl: string, variable: string): void {
  const parsed = parsePostgresUrl(databaseUrl);
  if (!parsed.ok || parsed.address.password === null) return;
  throw new CommandRefused(
    `${flag} holds a password, and other users of this machine see command lines. Put the password into the file that PGPASSFILE names, or set ${variable} in the environment.`,
  );
}
