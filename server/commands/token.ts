import { NAME_PATTERN, type Policy } from "../domain/policy.ts";
import { openStorage } from "../storage/storage.ts";
import type { TokenRecord, TokenStore } from "../storage/token-store.ts";

type Outcome = { readonly ok: true; readonly value: string } | { readonly ok: false; readonly fault: string };

type TokenRequest = {
  readonly role: string;
  readonly client: string;
  readonly tenant?: string;
  readonly expires?: string;
};

/** @returns the token itself, which is shown this once */
export async function createToken(
  databaseUrl: string,
  policy: Policy,
  request: TokenRequest,
  nowMs: number,
): Promise<Outcome> {
  const { role, client, tenant, expires } = request;
  const fault = requestFault(policy, request);
  if (fault !== null) return { ok: false, fault };
  const lifetimeMs = expires === undefined ? null : parseDuration(expires);
  if (Number.isNaN(lifetimeMs))
    return { ok: false, fault: `--expires ${expires}: give a time such as 12h, 90d or 52w.` };
  const expiresAtMs = lifetimeMs === null ? null : nowMs + lifetimeMs;
  const { token } = await withTokens(databaseUrl, (tokens) =>
    tokens.create({ role, client, tenant: tenant ?? null }, nowMs, expiresAtMs),
  );
  return { ok: true, value: token };
}

function requestFault(policy: Policy, { role, client, tenant }: TokenRequest): string | null {
  const isName = (text: string): boolean => new RegExp(NAME_PATTERN).test(text);
  const shape = "1 to 64 letters, digits, dots, dashes and underscores, the first a letter or digit";
  if (!isName(client)) return `--client ${client}: give ${shape}.`;
  if (tenant !== undefined && !isName(tenant)) return `--tenant ${tenant}: give ${shape}.`;
  const own = tenant === undefined ? undefined : policy.tenants.get(tenant);
  const rights = own?.get(role) ?? policy.roles.get(role);
  if (rights === undefined) {
    const roles = [...new Set([...policy.roles.keys(), ...(own?.keys() ?? [])])];
    return `--role ${role}: the policy has ${roles.join(", ")}.`;
  }
  const isForMetrics = rights.operations.has("metrics");
  if (isForMetrics && tenant !== undefined) {
    return `--tenant: leave it out. The role ${role} reads metrics, which name every tenant, so its tokens belong to none.`;
  }
  if (!isForMetrics && tenant === undefined)
    return `--tenant: name the tenant whose customers the token is for.`;
  return null;
}

export function listTokens(databaseUrl: string): Promise<string> {
  return withTokens(databaseUrl, async (tokens) => {
    const heading = ["PREFIX", "CLIENT", "ROLE", "TENANT", "CREATED", "EXPIRES", "LAST USED", "REVOKED"];
    const rows = (await tokens.list()).map(cells);
    const widths = heading.map((title, column) =>
      Math.max(title.length, ...rows.map((row) => (row[column] ?? "").length)),
    );
    return [heading, ...rows]
      .map((row) =>
        row
          .map((cell, column) => cell.padEnd(widths[column] ?? 0))
          .join("  ")
          .trimEnd(),
      )
      .join("\n");
  });
}

export function revokeToken(databaseUrl: string, prefix: string, nowMs: number): Promise<Outcome> {
  return withTokens(databaseUrl, async (tokens) => {
    const outcome = await tokens.revoke(prefix, nowMs);
    if (outcome.kind === "missing") {
      return {
        ok: false,
        fault: "No valid token begins like that. `token list` shows the first characters of each.",
      };
    }
    if (outcome.kind === "ambiguous") {
      const prefixes = outcome.tokens.map((token) => token.prefix).join(", ");
      return { ok: false, fault: `Several tokens begin like that: ${prefixes}. Give more characters.` };
    }
    const { prefix: revoked, client, role } = outcome.token;
    return { ok: true, value: `${revoked}: revoked (client ${client}, role ${role})` };
  });
}

async function withTokens<T>(databaseUrl: string, use: (tokens: TokenStore) => Promise<T>): Promise<T> {
  const storage = await openStorage(databaseUrl);
  try {
    return await use(storage.tokens);
  } finally {
    await storage.close();
  }
}

const UNITS_MS: Record<string, number> = { h: 3_600_000, d: 86_400_000, w: 604_800_000 };

/** @returns ms, or NaN */
function parseDuration(text: string): number {
  const [, count, unit = ""] = /^([1-9]\d{0,4})([hdw])$/.exec(text) ?? [];
  return Number(count) * (UNITS_MS[unit] ?? Number.NaN);
}

function cells(token: TokenRecord): string[] {
  const { prefix, client, role, tenant, createdAtMs, expiresAtMs, lastUsedAtMs, revokedAtMs } = token;
  const times = [createdAtMs, expiresAtMs, lastUsedAtMs, revokedAtMs].map((ms) =>
    ms === null ? "-" : new Date(ms).toISOString().slice(0, 16).replace("T", " "),
  );
  return [prefix, client, role, tenant ?? "-", ...times];
}
