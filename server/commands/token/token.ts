import type { Command } from "commander";
import { CommandRefused } from "../../domain/command-refused.ts";
import { maskPassword } from "../../domain/text/mask-password.ts";
import { databaseExists } from "../../storage/database-url/open-storage.ts";
import { tokenPrefix } from "../../storage/tokens/bearer-token.ts";
import type {
  NotOneToken,
  RotationTerms,
  TokenHolder,
  TokenStore,
} from "../../storage/tokens/token-store.ts";
import {
  DATABASE_SETTINGS,
  databaseOf,
  existingDatabaseOf,
  type NamedDatabase,
  withStorage,
} from "../common/named-database.ts";
import { OutputLost, print, requireKeptOutput } from "../common/print.ts";
import { type CommandOptions, settingsOf, withSettings } from "../common/setting-options.ts";
import { shownTime } from "../common/table.ts";
import { breakGlass, findingTable, tokenLines, tokenTable } from "./token-list.ts";
import {
  durationMs,
  notATime,
  type RotateOptions,
  readRotateOptions,
  readTokenOptions,
  type TokenOptions,
} from "./token-options.ts";

export function addTokenCommands(program: Command): void {
  const token = program.command("token").description("Create, list, rotate and revoke tokens.");
  withSettings(token.command("create"), [...DATABASE_SETTINGS, "policyFile"])
    .description("Print a new token, once.")
    .requiredOption("--role <role>", "a role of the policy")
    .requiredOption("--client <name>", "who will use it; shown in metrics and logs")
    .option("--tenant <name>", "whose customers it may reach; leave it out for a role that reads metrics")
    .option("--expires <time>", "how long it is valid: 12h, 90d, 52w; without it until revoked")
    .option(
      "--fields <names>",
      "the fields that it may read at most, separated by commas; without it those of the role",
    )
    .option(
      "--operations <names>",
      "what it may do at most, separated by commas; without it what the role may",
    )
    .action(async (options: TokenOptions & CommandOptions) => {
      const { policyFile } = settingsOf(options, ["policyFile"]);
      const wanted = readTokenOptions(policyFile.policy, options, Date.now());
      if (!wanted.ok) throw new CommandRefused(wanted.fault);
      await createToken(databaseOf(options), wanted.holder, wanted.expiresAtMs);
    });
  withSettings(token.command("list"), [...DATABASE_SETTINGS, "policyFile"])
    .description("List the tokens by their first characters.")
    .option("--break-glass", "only those to look at: all-powerful, never expiring, expired or unused ones")
    .option("--unused <time>", "from when on --break-glass calls a token unused: 12h, 90d, 52w", "90d")
    .option("--json", "a line of JSON for each token")
    .action(listTokens);
  withSettings(token.command("rotate"), DATABASE_SETTINGS)
    .description("Print a new token for the holder of another one, which stays valid for a while.")
    .argument("<prefix>", "the old token: its first characters, as listed, or the whole token")
    .option("--overlap <time>", "how long the old token stays valid: 0h, 12h, 7d", "24h")
    .option(
      "--expires <time>",
      "how long the new one is valid: 12h, 90d, never; without it as long as the old one was to be",
    )
    .action(async (prefix: string, options: RotateOptions & CommandOptions) => {
      const wanted = readRotateOptions(options);
      if (!wanted.ok) throw new CommandRefused(wanted.fault);
      await rotateToken(await existingDatabaseOf(options), prefix, wanted.terms);
    });
  withSettings(token.command("revoke"), DATABASE_SETTINGS)
    .description("Revoke a token; the next request with it is refused.")
    .argument("<prefix>", "its first characters, as listed, or the whole token")
    .action(async (prefix: string, options: CommandOptions) =>
      revokeToken(await existingDatabaseOf(options), prefix),
    );
}

/**
 * Prints the token alone on stdout, so that `TOKEN=$(…)` works; what else there is to know goes to stderr.
 */
async function createToken(
  database: NamedDatabase,
  holder: TokenHolder,
  expiresAtMs: number | null,
): Promise<void> {
  requireKeptOutput();
  const isNew = !(await databaseExists(database.databaseUrl, database.storage));
  await withStorage(database, async ({ tokens }) => {
    const { token, isTenantNew } = await tokens.create(holder, Date.now(), expiresAtMs);
    if (isNew) console.error(`Created the database ${maskPassword(database.databaseUrl)}.`);
    const lost = printToken(token);
    if (lost !== null) {
      await revokeLost(tokens, token, lost);
      throw new CommandRefused(`${lost}, so it was revoked. Create another one where it can be written.`);
    }
    if (isTenantNew) {
      console.error(
        `Tenant "${holder.tenant}" is new: it had no token and no customer. If that is a typing error, revoke the token.`,
      );
    }
  });
}

/** @throws CommandRefused with the command that revokes it where this fails, as while the database is locked */
async function revokeLost(tokens: TokenStore, token: string, lost: string): Promise<void> {
  try {
    await tokens.revoke(token, Date.now());
  } catch (cause) {
    throw new CommandRefused(
      `${lost}, could not be revoked, and is valid. Revoke it: \`customers-server token revoke ${tokenPrefix(token)}\`.`,
      { cause },
    );
  }
}

/** @returns null; or where it can't be written, the beginning of a sentence that names the token and has yet to say what becomes of it */
function printToken(token: string): string | null {
  try {
    print(token);
    return null;
  } catch (error) {
    if (!(error instanceof OutputLost)) throw error;
    return `${error.reason} The new token ${tokenPrefix(token)} could not be shown`;
  }
}

async function revokeToken(database: NamedDatabase, prefix: string): Promise<void> {
  const outcome = await withStorage(database, ({ tokens }) => tokens.revoke(prefix, Date.now()));
  if (outcome.kind !== "revoked") throw notOneToken(outcome);
  const { prefix: revoked, client, role } = outcome.token;
  print(`${revoked}: revoked (client ${client}, role ${role})`);
}

/** Prints the new token alone on stdout, as {@link createToken} does. */
async function rotateToken(database: NamedDatabase, prefix: string, terms: RotationTerms): Promise<void> {
  requireKeptOutput();
  const outcome = await withStorage(database, ({ tokens }) => tokens.rotate(prefix, terms, Date.now()));
  if (outcome.kind !== "rotated") throw notOneToken(outcome);
  const { token, made, replaced } = outcome;
  const end = made.expiresAtMs === null ? "until it is revoked" : `until ${shownTime(made.expiresAtMs)} UTC`;
  console.error(
    `${made.prefix}: made for client ${made.client}, role ${made.role}, valid ${end}\n${replaced.prefix}: valid until ${shownTime(replaced.expiresAtMs)} UTC`,
  );
  const lost = printToken(token);
  if (lost === null) return;
  // Not revoked: after an overlap of none its holder would have no token, and no way to another one.
  throw new CommandRefused(
    `${lost}, and is valid. Replace it where the output can be written: \`customers-server token rotate ${made.prefix} --overlap 0h\`.`,
  );
}

function notOneToken(outcome: NotOneToken): CommandRefused {
  if (outcome.kind === "missing") {
    return new CommandRefused(
      "No valid token starts with these characters. `token list` shows the first characters of each token.",
    );
  }
  const prefixes = outcome.tokens.map((token) => token.prefix).join(", ");
  return new CommandRefused(`Several tokens start with these characters: ${prefixes}. Give more characters.`);
}

type ListOptions = { readonly breakGlass?: boolean; readonly unused: string; readonly json?: boolean };

async function listTokens(options: ListOptions & CommandOptions): Promise<void> {
  const unusedMs = durationMs(options.unused);
  if (Number.isNaN(unusedMs)) throw new CommandRefused(notATime("--unused", options.unused));
  const tokens = await withStorage(await existingDatabaseOf(options), async ({ tokens }) => tokens.list());
  if (options.breakGlass !== true) {
    print(options.json === true ? tokenLines(tokens) : tokenTable(tokens));
    return;
  }
  const { policy } = settingsOf(options, ["policyFile"]).policyFile;
  const found = breakGlass(tokens, policy, unusedMs, Date.now());
  print(options.json === true ? tokenLines(found) : findingTable(found));
}
