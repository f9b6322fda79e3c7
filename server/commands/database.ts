import type { Command } from "commander";
import { CommandRefused } from "../domain/command-refused.ts";
import { maskPassword } from "../domain/text/mask-password.ts";
import { databaseExists, isInMemory, MEMORY_URL, openStorage } from "../storage/database-url/open-storage.ts";
import { isPostgresUrl, parsePostgresUrl } from "../storage/postgres/connection/postgres-url.ts";
import { checkPostgres } from "../storage/postgres/postgres-check.ts";
import { backupDatabase } from "../storage/sqlite/files/backup.ts";
import { checkDatabase } from "../storage/sqlite/files/check.ts";
import type { Erasure } from "../storage/sqlite/files/erasures.ts";
import { restoreDatabase } from "../storage/sqlite/files/restore.ts";
import { refuseSecondName } from "../storage/sqlite/files/second-name.ts";
import { sqlitePath } from "../storage/sqlite/files/sqlite-url.ts";
import type { Storage, StorageOptions } from "../storage/storage.ts";
import { print } from "./print.ts";
import { settingsOf, withSettings } from "./setting-options.ts";
import { beforeEnd } from "./signals.ts";

type Options = Readonly<Record<string, unknown>>;

export function addDatabaseCommands(program: Command): void {
  withSettings(program.command("backup"), FILE_SETTINGS)
    .description("Write a consistent copy of the database, also while the service runs.")
    .argument("<file>", "a file that does not exist yet")
    .action(async (file: string, options: Options) => {
      // As an unset variable of a shell gives it.
      if (file === "")
        throw new CommandRefused("The name of the backup is empty. Name a file that does not exist yet.");
      const { databaseUrl, storage } = databaseOf(options);
      refusePostgres(databaseUrl, "pg_dump");
      await backupDatabase(sqlitePath(databaseUrl), file, storage.lockWaitMs, beforeEnd);
      print(`${file}: written. It holds customers and token digests: keep it as safe as the database.`);
    });
  withSettings(program.command("restore"), FILE_SETTINGS)
    .description("Put a backup in the database's place, after checking it. The service must be stopped.")
    .argument("<file>", "a backup")
    .option("--force", "replace a database that exists")
    .action(async (file: string, options: Options) => {
      const { databaseUrl, storage } = databaseOf(options);
      refusePostgres(databaseUrl, "pg_restore");
      const databasePath = sqlitePath(databaseUrl);
      const held = await restoreDatabase(
        file,
        databasePath,
        options["force"] === true,
        storage.lockWaitMs,
        beforeEnd,
      );
      print(
        `${databasePath}: restored from ${file}. Tokens are as they were in the backup; a token revoked since then is valid again: see \`token list\`. ${erasedAgain(held)}`,
      );
    });
  withSettings(program.command("check"), DATABASE_SETTINGS)
    .description("Check the structure of the database; exit code 1 when it is damaged.")
    .action(async (options: Options) => {
      const { databaseUrl, storage } = databaseOf(options);
      const isPostgres = isPostgresUrl(databaseUrl);
      const databasePath = isPostgres ? maskPassword(databaseUrl) : sqlitePath(databaseUrl);
      if (!isPostgres) refuseSecondName(databasePath);
      const report = isPostgres
        ? await checkPostgres(databaseUrl, storage)
        : checkDatabase(databasePath, storage.lockWaitMs);
      if (report.faults.length > 0) {
        throw new CommandRefused([`${databasePath}: damaged`, ...report.faults].join("\n  "));
      }
      print(
        `${databasePath}: the structure is sound (schema ${report.schemaVersion}, ${report.customers} customers, ${report.tokens} tokens)`,
      );
    });
}

/** @param held null where nothing is known */
function erasedAgain(held: readonly Erasure[] | null): string {
  if (held === null) return "A customer erased since then is there again, too: erase it again.";
  // Retention may have deleted rows of erasures.
  const asFar = "As far as the audit trail of the replaced database goes back,";
  if (held.length === 0) return `${asFar} it holds no customer who was erased.`;
  const ids = held.map(({ customerId }) => customerId).join(" ");
  return `${asFar} ${held.length} of its customers were erased since then. Erase again: \`person erase --yes ${ids}\`.`;
}

/** The settings of commands that PostgreSQL has tools of its own for. */
const FILE_SETTINGS = ["databaseUrl", "lockWait"] as const;

/** The settings that name a database, and say how to reach it. */
export const DATABASE_SETTINGS = ["databaseUrl", "databaseCa", "lockWait"] as const;

export type NamedDatabase = { readonly databaseUrl: string; readonly storage: StorageOptions };

export function databaseOf(options: Options): NamedDatabase {
  const { databaseUrl, databaseCa, lockWait } = settingsOf(options, DATABASE_SETTINGS);
  const storage = { caFile: databaseCa, lockWaitMs: lockWait * 1000 };
  if (!isInMemory(databaseUrl)) return { databaseUrl, storage };
  throw new CommandRefused(`${MEMORY_URL} lives inside a running service. Name the file in DATABASE_URL.`);
}

/**
 * The database of a command that creates none: in the wrong
 * directory, or mistyped, it would look at an empty one.
 */
export async function existingDatabaseOf(options: Options): Promise<NamedDatabase> {
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

function refusePostgres(databaseUrl: string, tool: string): void {
  if (!isPostgresUrl(databaseUrl)) return;
  throw new CommandRefused(
    `PostgreSQL has tools of its own for this, which also keep up with a running service: use ${tool}.`,
  );
}
