import type { Command } from "commander";
import { CommandRefused } from "../domain/command-refused.ts";
import { maskPassword } from "../domain/mask-password.ts";
import { NAME_PATTERN, type Policy } from "../domain/policy.ts";
import { databaseExists, openStorage } from "../storage/database-url/open-storage.ts";
import type { TokenHolder, TokenRecord, TokenStore } from "../storage/token-store.ts";
import { DATABASE_SETTINGS, databaseOf, existingDatabaseOf, type NamedDatabase } from "./database.ts";
import { settingsOf, withSettings } from "./setting-options.ts";

type Options = Readonly<Record<string, unknown>>;

export function addTokenCommands(program: Command): void {
  const token = program.command("token").description("Create, list and revoke tokens.");
  withSettings(token.command("create"), [...DATABASE_SETTINGS, "policyFile"])
    .description("Print a new token, once.")
    .requiredOption("--role <role>", "a role of the policy")
    .requiredOption("--client <name>", "who will use it; shown in metrics and logs")
    .option("--tenant <name>", "whose customers it may reach; leave it out for a role that reads metrics")
    .option("--expires <time>", "how long it is valid: 12h, 90d, 52w; without it until revoked")
    .action(async (options: TokenOptions & Options) => {
      const { policyFile } = settingsOf(options, ["policyFile"]);
      const wanted = readTokenOptions(policyFile.policy, options, Date.now());
      if (!wanted.ok) throw new CommandRefused(wanted.fault);
      await createToken(databaseOf(options), wanted.holder, wanted.expiresAtMs);
    });
  withSettings(token.command("list"), DATABASE_SETTINGS)
    .description("List the tokens by their first characters.")
    .action(async (options: Options) => {
      const rows = await withTokens(await existingDatabaseOf(options), async (tokens) => tokens.list());
      console.log(table(rows));
    });
  withSettings(token.command("revoke"), DATABASE_SETTINGS)
    .description("Revoke a token; the next request with it is refused.")
    .argument("<prefix>", "its first characters, as listed, or the whole token")
    .action(async (prefix: string, options: Options) =>
      revokeToken(await existingDatabaseOf(options), prefix),
    );
}

type TokenOptions = {
  readonly role: string;
  readonly client: string;
  readonly tenant?: string;
  readonly expires?: string;
};

type TokenReading =
  | { readonly ok: true; readonly holder: TokenHolder; readonly expiresAtMs: number | null }
  | { readonly ok: false; readonly fault: string };

const NAME_SHAPE = "1 to 64 letters, digits, dots, dashes and underscores, starting with a letter or digit";

/**
 * Reads whom the new token is for.
 *
 * @returns that, or one sentence: which option is wrong, and what it must be
 */
export function readTokenOptions(policy: Policy, options: TokenOptions, nowMs: number): TokenReading {
  const { role, client, tenant, expires } = options;
  const refuse = (fault: string): TokenReading => ({ ok: false, fault });
  const isName = (text: string): boolean => new RegExp(NAME_PATTERN).test(text);
  if (!isName(client)) return refuse(`--client "${client}" must be ${NAME_SHAPE}.`);
  if (tenant !== undefined && !isName(tenant)) return refuse(`--tenant "${tenant}" must be ${NAME_SHAPE}.`);
  const own = tenant === undefined ? undefined : policy.tenants.get(tenant);
  const rights = own?.get(role) ?? policy.roles.get(role);
  if (rights === undefined) {
    const roles = [...new Set([...policy.roles.keys(), ...(own?.keys() ?? [])])];
    return refuse(`--role "${role}" must be a role of the policy: ${roles.join(", ")}.`);
  }
  const isForMetrics = rights.operations.has("metrics");
  if (isForMetrics && tenant !== undefined) {
    return refuse(
      `--tenant must be left out: the role ${role} reads metrics, which name every tenant, so its tokens belong to none.`,
    );
  }
  if (!isForMetrics && tenant === undefined) {
    return refuse("--tenant is missing. Name the tenant whose customers the token may reach.");
  }
  const lifetimeMs = expires === undefined ? null : readDuration(expires);
  if (Number.isNaN(lifetimeMs))
    return refuse(`--expires "${expires}" must be a time such as 12h, 90d or 52w.`);
  return {
    ok: true,
    holder: { role, client, tenant: tenant ?? null },
    expiresAtMs: lifetimeMs === null ? null : nowMs + lifetimeMs,
  };
}

/**
 * Prints the token alone on stdout, so that `TOKEN=$(…)` works; what else there is to know goes to stderr.
 */
async function createToken(
  database: NamedDatabase,
  holder: TokenHolder,
  expiresAtMs: number | null,
): Promise<void> {
  const isNew = !(await databaseExists(database.databaseUrl, database.storage));
  const { token, isTenantNew } = await withTokens(database, (tokens) =>
    tokens.create(holder, Date.now(), expiresAtMs),
  );
  if (isNew) console.error(`Created the database ${maskPassword(database.databaseUrl)}.`);
  if (isTenantNew) {
    console.error(
      `Tenant "${holder.tenant}" is new: it had no token and no customer. If that is a typing error, revoke the token.`,
    );
  }
  console.log(token);
}

async function revokeToken(database: NamedDatabase, prefix: string): Promise<void> {
  const outcome = await withTokens(database, (tokens) => tokens.revoke(prefix, Date.now()));
  if (outcome.kind === "missing") {
    throw new CommandRefused(
      "No valid token starts with these characters. `token list` shows the first characters of each token.",
    );
  }
  if (outcome.kind === "ambiguous") {
    const prefixes = outcome.tokens.map((token) => token.prefix).join(", ");
    throw new CommandRefused(
      `Several tokens start with these characters: ${prefixes}. Give more characters.`,
    );
  }
  const { prefix: revoked, client, role } = outcome.token;
  console.log(`${revoked}: revoked (client ${client}, role ${role})`);
}

async function withTokens<T>(
  { databaseUrl, storage: options }: NamedDatabase,
  use: (tokens: TokenStore) => Promise<T>,
): Promise<T> {
  const storage = await openStorage(databaseUrl, options);
  try {
    return await use(storage.tokens);
  } finally {
    await storage.close();
  }
}

const UNITS_MS: Record<string, number> = { h: 3_600_000, d: 86_400_000, w: 604_800_000 };

/** @returns ms, or NaN */
function readDuration(text: string): number {
  const [, count, unit = ""] = /^([1-9]\d{0,4})([hdw])$/.exec(text) ?? [];
  return Number(count) * (UNITS_MS[unit] ?? Number.NaN);
}

function table(tokens: readonly TokenRecord[]): string {
  const heading = ["PREFIX", "CLIENT", "ROLE", "TENANT", "CREATED", "EXPIRES", "LAST USED", "REVOKED"];
  const rows = [heading, ...tokens.map(cells)];
  const widths = heading.map((_, column) => Math.max(...rows.map((row) => (row[column] ?? "").length)));
  const line = (row: readonly string[]): string =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join("  ")
      .trimEnd();
  return rows.map(line).join("\n");
}

function cells(token: TokenRecord): string[] {
  const { prefix, client, role, tenant, createdAtMs, expiresAtMs, lastUsedAtMs, revokedAtMs } = token;
  const times = [createdAtMs, expiresAtMs, lastUsedAtMs, revokedAtMs].map((ms) =>
    ms === null ? "-" : new Date(ms).toISOString().slice(0, 16).replace("T", " "),
  );
  return [prefix, client, role, tenant ?? "-", ...times];
}
