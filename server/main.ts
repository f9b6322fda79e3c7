#!/usr/bin/env -S bun --no-env-file
import { existsSync } from "node:fs";
import { Command, CommanderError } from "commander";
import packageJson from "../package.json";
import { createToken, listTokens, revokeToken } from "./commands/token.ts";
import { type Config, readConfig, SETTINGS, type SettingName } from "./config/config.ts";
import { readPolicyFile } from "./config/policy-file.ts";
import { nearest } from "./domain/nearest.ts";
import { curlLines } from "./first-start.ts";
import { StartRefused, startService } from "./service.ts";
import { StoreUnavailable } from "./storage/customer-store.ts";
import { backupDatabase } from "./storage/sqlite/backup.ts";
import { checkDatabase } from "./storage/sqlite/check.ts";
import { restoreDatabase } from "./storage/sqlite/restore.ts";
import { DatabaseRefused, MEMORY } from "./storage/sqlite/sqlite-database.ts";

// Databases, tokens and backups are their owner's alone.
process.umask(0o077);

/** A command that can't do what it was asked. The message says why and what to do. */
class CommandRefused extends Error {
  override readonly name = "CommandRefused";
}

type Flags = Record<string, string | boolean | undefined>;

const SERVE: readonly SettingName[] = SETTINGS.map(({ name }) => name);
const DATABASE: readonly SettingName[] = ["DATABASE_URL"];
const DATABASE_AND_POLICY: readonly SettingName[] = ["DATABASE_URL", "POLICY_FILE"];

const program = new Command("server/main.ts")
  .description("The customer resource service.")
  .version(packageJson.version)
  .showSuggestionAfterError()
  .showHelpAfterError("(--help lists the commands and options)")
  .exitOverride();

withSettings(program.command("serve", { isDefault: true }), SERVE)
  .description("Start the service.")
  .option("--print-url", 'print one line, {"url":"…"}, on stdout and nothing else')
  .option("--no-samples", "leave out the sample customers of the first start")
  // As the default command it is handed every word that is no command.
  .allowExcessArguments()
  .action(async (flags: Flags, { args: [word] }: Command) => {
    if (word !== undefined) refuseWord(word);
    await serve(flags);
  });

const token = program.command("token").description("Make, list and revoke tokens.");
withSettings(token.command("create"), DATABASE_AND_POLICY)
  .description("Print a new token, once.")
  .requiredOption("--role <role>", "a role of the policy")
  .requiredOption("--client <name>", "who will use it; stands in metrics and logs")
  .option("--tenant <name>", "whose customers it is for; left out for a role that reads metrics alone")
  .option("--expires <time>", "how long it holds: 12h, 90d, 52w; without it until revoked")
  .action(async (flags: { role: string; client: string; tenant?: string; expires?: string } & Flags) => {
    const { databaseUrl, databasePath, policy } = configOf(flags, DATABASE_AND_POLICY);
    const isNew = !existsSync(onDisk(databasePath));
    const created = await createToken(databaseUrl, policy, flags, Date.now());
    if (!created.ok) throw new CommandRefused(created.fault);
    if (isNew) console.error(`${databasePath} did not exist and was made.`);
    console.log(created.value);
  });
withSettings(token.command("list"), DATABASE)
  .description("List the tokens by their first characters.")
  .action(async (flags: Flags) => console.log(await listTokens(existing(flags))));
withSettings(token.command("revoke"), DATABASE)
  .description("Revoke a token; it is refused from the next request on.")
  .argument("<prefix>", "its first characters, as listed, or the whole token")
  .action(async (prefix: string, flags: Flags) => {
    const revoked = await revokeToken(existing(flags), prefix, Date.now());
    if (!revoked.ok) throw new CommandRefused(revoked.fault);
    console.log(revoked.value);
  });

withSettings(program.command("backup"), DATABASE)
  .description("Write a consistent copy of the database, also while the service runs.")
  .argument("<file>", "a file that does not exist yet")
  .action((file: string, flags: Flags) => {
    backupDatabase(databaseOf(flags), file);
    console.log(`${file}: written. It holds customers and token digests: keep it as safe as the database.`);
  });
withSettings(program.command("restore"), DATABASE)
  .description("Put a backup in the database's place, after checking it. The service must be stopped.")
  .argument("<file>", "a backup")
  .option("--force", "replace a database that exists")
  .action((file: string, flags: Flags) => {
    const databasePath = databaseOf(flags);
    restoreDatabase(file, databasePath, flags["force"] === true);
    console.log(
      `${databasePath}: restored from ${file}. Tokens are as they were in the backup; a token revoked since then is valid again: see \`token list\`.`,
    );
  });
withSettings(program.command("check"), DATABASE)
  .description("Check the integrity of the database; exit code 1 when it is damaged.")
  .action((flags: Flags) => {
    const databasePath = databaseOf(flags);
    const report = checkDatabase(databasePath);
    if (report.faults.length > 0) {
      throw new CommandRefused([`${databasePath}: damaged`, ...report.faults].join("\n  "));
    }
    console.log(
      `${databasePath}: sound (schema ${report.schemaVersion}, ${report.customers} customers, ${report.tokens} tokens)`,
    );
  });

program
  .command("policy")
  .description("Work with policy files.")
  .command("check")
  .description("Check a policy file; exit code 1 and every fault when it is refused.")
  .argument("<file>")
  .action((file: string) => {
    const result = readPolicyFile(file);
    if (!result.ok) throw new CommandRefused([`${file}: refused`, ...result.faults].join("\n  "));
    const { roles, enforcement } = result.policy;
    const end =
      enforcement.mode === "observe" ? new Date(enforcement.untilMs).toISOString().slice(0, 10) : null;
    const until =
      end === null ? "" : ` until ${end}${Date.parse(end) <= Date.now() ? ", which is over" : ""}`;
    console.log(
      `${file}: valid (roles ${[...roles.keys()].join(", ")}; enforcement ${enforcement.mode}${until})`,
    );
  });

async function serve(flags: Flags): Promise<void> {
  const config = configOf(flags, SERVE);
  const service = await startService(config, flags["samples"] !== false);
  let stopping = false;
  const stop = async (): Promise<void> => {
    if (stopping) return;
    stopping = true;
    await service.stop();
    process.exit(0);
  };
  // Before the address is printed: whoever reads it may signal at once.
  process.on("SIGTERM", stop);
  process.on("SIGINT", stop);
  process.on("SIGHUP", service.reloadPolicy);
  if (flags["printUrl"] === true) return console.log(JSON.stringify({ url: service.url }));
  console.log(`Listening on ${service.url}`);
  if (service.first === null) return;
  console.log(`\nThe first start made an admin token: ${service.first.tokenFile}. Try:\n`);
  for (const line of curlLines(service.first, service.url, config.tls !== null)) console.log(`${line}\n`);
}

function refuseWord(word: string): never {
  const near = nearest(
    word,
    program.commands.map((command) => command.name()),
  );
  const hint = near === null ? "" : `\n(Did you mean ${near}?)`;
  return program.error(`error: unknown command '${word}'${hint}`);
}

function withSettings(command: Command, names: readonly SettingName[]): Command {
  for (const { name, flag, fallback, meaning } of SETTINGS) {
    if (!names.includes(name)) continue;
    const shown = fallback === "" ? "" : ` (default ${fallback})`;
    command.option(`${flag} <value>`, `${meaning} Environment: ${name}${shown}`);
  }
  return command;
}

function configOf(flags: Flags, names: readonly SettingName[]): Config {
  const given = SETTINGS.map(({ name, flag }): [string, string | undefined] => {
    const value = flags[flag.slice(2).replace(/-(.)/g, (_, letter: string) => letter.toUpperCase())];
    return [name, typeof value === "string" ? value : undefined];
  });
  const result = readConfig(Object.fromEntries(given), process.env, names);
  if (result.ok) return result.config;
  throw new CommandRefused(["The settings are refused:", ...result.faults].join("\n  "));
}

function databaseOf(flags: Flags): string {
  return onDisk(configOf(flags, DATABASE).databasePath);
}

/** The database URL of a command that makes none: in the wrong directory, or mistyped, it would look at an empty one. */
function existing(flags: Flags): string {
  const databasePath = databaseOf(flags);
  if (existsSync(databasePath)) return configOf(flags, DATABASE).databaseUrl;
  throw new CommandRefused(
    `${databasePath} does not exist. Name the database of the service in DATABASE_URL.`,
  );
}

function onDisk(databasePath: string): string {
  if (databasePath !== MEMORY) return databasePath;
  throw new CommandRefused("sqlite::memory: lives inside a running service. Name the file in DATABASE_URL.");
}

try {
  await program.parseAsync();
} catch (error) {
  if (error instanceof CommanderError) {
    // commander has written its message; its own exit code for a usage error is 1.
    process.exitCode = error.exitCode === 0 ? 0 : 2;
  } else if (
    error instanceof CommandRefused ||
    error instanceof StartRefused ||
    error instanceof DatabaseRefused
  ) {
    console.error(error.message);
    process.exitCode = 1;
  } else if (error instanceof StoreUnavailable) {
    console.error(`The database can't answer now (${error.message}); nothing was changed. Try again.`);
    process.exitCode = 1;
  } else throw error;
}
