import type { Command } from "commander";
import { CommandRefused } from "../domain/command-refused.ts";
import { maskPassword } from "../domain/text/mask-password.ts";
import { isPostgresUrl } from "../storage/postgres/connection/postgres-url.ts";
import { migratePostgres } from "../storage/postgres/migrate-postgres.ts";
import { grantsFor } from "../storage/postgres/schema/grants.ts";
import { DATABASE_SETTINGS, databaseOf } from "./common/named-database.ts";
import { print } from "./common/print.ts";
import { type CommandOptions, withSettings } from "./common/setting-options.ts";

export function addPostgresCommands(program: Command): void {
  withSettings(program.command("migrate"), DATABASE_SETTINGS)
    .description("Make or upgrade the schema of a PostgreSQL database, as the role that is to own it.")
    .action(async (options: CommandOptions) => {
      const { databaseUrl, storage } = databaseOf(options);
      if (!isPostgresUrl(databaseUrl)) {
        throw new CommandRefused(
          "Only PostgreSQL needs this: a SQLite database gets its schema at the first start.",
        );
      }
      const outcome = await migratePostgres(databaseUrl, storage);
      print(`${maskPassword(databaseUrl)}: ${MIGRATED[outcome]}`);
    });
  program
    .command("grants")
    .description("Print the SQL that lets a PostgreSQL role run the service, and nothing more.")
    .requiredOption("--role <role>", "the role of the services")
    .option(
      "--audit-retention",
      "with the right to delete old rows of the audit trail, for AUDIT_RETENTION_DAYS",
    )
    .option("--erasure", "with the right to delete values that the audit trail keeps, for `person erase`")
    .action(({ role, auditRetention = false, erasure = false }: GrantOptions) => {
      const bytes = Buffer.byteLength(role);
      if (bytes === 0 || bytes > ROLE_BYTES_MAX) {
        throw new CommandRefused(
          `--role "${role}" must be the name of a PostgreSQL role: 1 to ${ROLE_BYTES_MAX} bytes.`,
        );
      }
      print(grantsFor(role, { hasAuditRetention: auditRetention, mayErase: erasure }));
    });
}

/** PostgreSQL cuts longer names off, and the rights would go to another role. */
const ROLE_BYTES_MAX = 63;

type GrantOptions = { readonly role: string; readonly auditRetention?: boolean; readonly erasure?: boolean };

const MIGRATED = {
  made: "the schema was made",
  "carried-over": "the schema was carried over to this version; run `grants` again",
  "up-to-date": "the schema is up to date",
} as const;
