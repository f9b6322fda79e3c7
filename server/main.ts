#!/usr/bin/env -S bun --no-env-file
import { Command, CommanderError } from "commander";
import packageJson from "../package.json";
import { type Config, readConfig, SETTINGS } from "./config.ts";
import { curlLines } from "./first-start.ts";
import { readPolicyFile } from "./policy-file.ts";
import { StartRefused, startService } from "./service.ts";
import { backupDatabase, checkDatabase, restoreDatabase } from "./storage/backup.ts";
import { DatabaseRefused, MEMORY } from "./storage/sqlite-database.ts";
import { createToken, listTokens, revokeToken } from "./token-commands.ts";

// Databases, tokens and backups are their owner's alone.
process.umask(0o077);

/** A command that can't do what it was asked. The message says why and what to do. */
class CommandRefused extends Error {
  override readonly name = "CommandRefused";
}

type Flags = Record<string, string | boolean | undefined>;

const program = new Command("server/main.ts")
  .description("The customer resource service.")
  .version(packageJson.version)
  .showSuggestionAfterError()
  .showHelpAfterError("(--help lists the commands and options)")
  .exitOverride();

withSettings(program.command("serve", { isDefault: true }))
  .description("Start the service.")
  .option("--print-url", 'print one line, {"url":"…"}, on stdout and nothing else')
  .option("--no-samples", "leave out the sample customers of the first start")
  .action(serve);

const token = program.command("token").description("Make, list and revoke tokens.");
withSettings(token.command("create"), ["DATABASE_URL", "POLICY_FILE"])
  .description("Print a new token, once.")
  .requiredOption("--role <role>", "a role of the policy")
  .requiredOption("--client <name>", "who will use it; stands in metrics and logs")
  .option("--tenant <name>", "whose customers it is for; left out for a role that reads metrics alone")
  .option("--expires <time>", "how long it holds: 12h, 90d, 52w; without it until revoked")
  .action(async (flags: { role: string; client: string; tenant?: string; expires?: string } & Flags) => {
    const { databasePath, policyFile } = configOf(flags);
    const policy = readPolicyFile(policyFile);
    if (!policy.ok) throw new CommandRefused(["The policy file is refused:", ...policy.faults].join("\n  "));
    const created = await createToken(onDisk(databasePath), policy.policy, flags, Date.now());
    if (!created.ok) throw new CommandRefused(created.fault);
    console.log(created.value);
  });
withSettings(token.command("list"), ["DATABASE_URL"])
  .description("List the tokens by their first characters.")
  .action(async (flags: Flags) => console.log(await listTokens(onDisk(configOf(flags).databasePath))));
withSettings(token.command("revoke"), ["DATABASE_URL"])
  .description("Revoke a token; it is refused from the next request on.")
  .argument("<prefix>", "its first characters, as listed")
  .action(async (prefix: string, flags: Flags) => {
    const revoked = await revokeToken(onDisk(configOf(flags).databasePath), prefix, Date.now());
    if (!revoked.ok) throw new CommandRefused(revoked.fault);
    console.log(revoked.value);
  });

withSettings(program.command("backup"), ["DATABASE_URL"])
  .description("Write a consistent copy of the database, also while the service runs.")
  .argument("<file>", "a file that does not exist yet")
  .action((file: string, flags: Flags) => {
    backupDatabase(onDisk(configOf(flags).databasePath), file);
    console.log(`${file}: written. It holds customers and token digests: keep it as safe as the database.`);
  });
withSettings(program.command("restore"), ["DATABASE_URL"])
  .description("Put a backup in the database's place, after checking it. The service must be stopped.")
  .argument("<file>", "a backup")
  .option("--force", "replace a database that exists")
  .action((file: string, flags: Flags) => {
    const { databasePath } = configOf(flags);
    restoreDatabase(file, onDisk(databasePath), flags["force"] === true);
    console.log(
      `${databasePath}: restored from ${file}. Tokens are as they were in the backup; a token revoked since then is valid again: see \`token list\`.`,
    );
  });
withSettings(program.command("check"), ["DATABASE_URL"])
  .description("Check the integrity of the database; exit code 1 when it is damaged.")
  .action((flags: Flags) => {
    const { databasePath } = configOf(flags);
    const report = checkDatabase(onDisk(databasePath));
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
    console.log(`${file}: valid (roles ${[...roles.keys()].join(", ")}; enforcement ${enforcement.mode})`);
  });

async function serve(flags: Flags): Promise<void> {
  const config = configOf(flags);
  const service = await startService(config, flags["samples"] !== false);
  if (flags["printUrl"] === true) console.log(JSON.stringify({ url: service.url }));
  else {
    console.log(`Listening on ${service.url}`);
    if (service.first !== null) {
      console.log(`\nThe first start made an admin token: ${service.first.tokenFile}. Try:\n`);
      for (const line of curlLines(service.first, service.url, config.tls !== null)) console.log(`${line}\n`);
    }
  }
  let stopping = false;
  const stop = async (): Promise<void> => {
    if (stopping) return;
    stopping = true;
    await service.stop();
    process.exit(0);
  };
  process.on("SIGTERM", stop);
  process.on("SIGINT", stop);
  process.on("SIGHUP", service.reloadPolicy);
}

function withSettings(command: Command, names?: readonly string[]): Command {
  for (const { name, flag, fallback, meaning } of SETTINGS) {
    if (names !== undefined && !names.includes(name)) continue;
    const shown = fallback === "" ? "" : ` (default ${fallback})`;
    command.option(`${flag} <value>`, `${meaning} Environment: ${name}${shown}`);
  }
  return command;
}

function configOf(flags: Flags): Config {
  const given = SETTINGS.map(({ name, flag }): [string, string | undefined] => {
    const value = flags[flag.slice(2).replace(/-(.)/g, (_, letter: string) => letter.toUpperCase())];
    return [name, typeof value === "string" ? value : undefined];
  });
  const result = readConfig(Object.fromEntries(given), process.env);
  if (result.ok) return result.config;
  throw new CommandRefused(["The settings are refused:", ...result.faults].join("\n  "));
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
  } else throw error;
}
