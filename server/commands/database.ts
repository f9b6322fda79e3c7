import type { Command } from "commander";
import { CommandRefused } from "../domain/command-refused.ts";
import { maskPassword } from "../domain/text/mask-password.ts";
import { isPostgresUrl } from "../storage/postgres/connection/postgres-url.ts";
import { checkPostgres } from "../storage/postgres/postgres-check.ts";
import { backupDatabase } from "../storage/sqlite/files/backup.ts";
import { checkDatabase } from "../storage/sqlite/files/check.ts";
import type { Erasure } from "../storage/sqlite/files/erasures.ts";
import { restoreDatabase } from "../storage/sqlite/files/restore.ts";
import { refuseSecondName } from "../storage/sqlite/files/second-name.ts";
import { sqlitePath } from "../storage/sqlite/files/sqlite-url.ts";
import { DATABASE_SETTINGS, databaseOf } from "./common/named-database.ts";
import { print } from "./common/print.ts";
import { type CommandOptions, withSettings } from "./common/setting-options.ts";
import { beforeEnd } from "./common/signals.ts";

export function addDatabaseCommands(program: Command): void {
  withSettings(program.command("backup"), FILE_SETTINGS)
    .description("Write a consistent copy of the database, also while the service runs.")
    .argument("<file>", "a file that does not exist yet")
    .action(async (file: string, options: CommandOptions) => {
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
    .action(async (file: string, options: CommandOptions) => {
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
    .action(async (options: CommandOptions) => {
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

function refusePostgres(databaseUrl: string, tool: string): void {
  if (!isPostgresUrl(databaseUrl)) return;
  throw new CommandRefused(
    `PostgreSQL has tools of its own for this, which also keep up with a running service: use ${tool}.`,
  );
}
