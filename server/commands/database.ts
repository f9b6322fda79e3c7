import { existsSync } from "node:fs";
import type { Command } from "commander";
import { CommandRefused } from "../domain/command-refused.ts";
import { MEMORY_URL } from "../storage/open-storage.ts";
import { backupDatabase } from "../storage/sqlite/files/backup.ts";
import { checkDatabase } from "../storage/sqlite/files/check.ts";
import { restoreDatabase } from "../storage/sqlite/files/restore.ts";
import { sqlitePath } from "../storage/sqlite/files/sqlite-url.ts";
import { settingsOf, withSettings } from "./setting-options.ts";

type Options = Readonly<Record<string, unknown>>;

export function addDatabaseCommands(program: Command): void {
  withSettings(program.command("backup"), ["databaseUrl"])
    .description("Write a consistent copy of the database, also while the service runs.")
    .argument("<file>", "a file that does not exist yet")
    .action((file: string, options: Options) => {
      backupDatabase(sqlitePath(databaseUrlOf(options)), file);
      console.log(`${file}: written. It holds customers and token digests: keep it as safe as the database.`);
    });
  withSettings(program.command("restore"), ["databaseUrl"])
    .description("Put a backup in the database's place, after checking it. The service must be stopped.")
    .argument("<file>", "a backup")
    .option("--force", "replace a database that exists")
    .action((file: string, options: Options) => {
      const databasePath = sqlitePath(databaseUrlOf(options));
      restoreDatabase(file, databasePath, options["force"] === true);
      console.log(
        `${databasePath}: restored from ${file}. Tokens are as they were in the backup; a token revoked since then is valid again: see \`token list\`.`,
      );
    });
  withSettings(program.command("check"), ["databaseUrl"])
    .description("Check the structure of the database; exit code 1 when it is damaged.")
    .action((options: Options) => {
      const databasePath = sqlitePath(databaseUrlOf(options));
      const report = checkDatabase(databasePath);
      if (report.faults.length > 0) {
        throw new CommandRefused([`${databasePath}: damaged`, ...report.faults].join("\n  "));
      }
      console.log(
        `${databasePath}: the structure is sound (schema ${report.schemaVersion}, ${report.customers} customers, ${report.tokens} tokens)`,
      );
    });
}

export function databaseUrlOf(options: Options): string {
  const { databaseUrl } = settingsOf(options, ["databaseUrl"]);
  if (databaseUrl !== MEMORY_URL) return databaseUrl;
  throw new CommandRefused(`${MEMORY_URL} lives inside a running service. Name the file in DATABASE_URL.`);
}

/** The database of a command that creates none: in the wrong directory, or mistyped, it would look at an empty one. */
export function existingDatabaseUrlOf(options: Options): string {
  const databaseUrl = databaseUrlOf(options);
  if (!isNewDatabase(databaseUrl)) return databaseUrl;
  throw new CommandRefused(
    `${sqlitePath(databaseUrl)} does not exist. Name the database of the service in DATABASE_URL.`,
  );
}

export function isNewDatabase(databaseUrl: string): boolean {
  return !existsSync(sqlitePath(databaseUrl));
}
