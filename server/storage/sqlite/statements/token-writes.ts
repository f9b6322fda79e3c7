import type { RevokeOutcome, TokenHolder } from "../../token-store.ts";
import type { Params, StatementCache } from "./statement-cache.ts";
import { TOKEN_COLUMNS, type TokenRow, tokenRecord } from "./token-rows.ts";

export type NewToken = {
  /** SHA-256 of the token, hexadecimal. */
  readonly digest: string;
  readonly prefix: string;
  readonly holder: TokenHolder;
  readonly nowMs: number;
  readonly expiresAtMs: number | null;
};
/** A token by its digest, or by the first characters that are shown of it. */
type WhichToken = { readonly digest: string } | { readonly prefix: string };

/** The writes on tokens, on the writer's connection inside its transaction. */
export const TOKEN_WRITES = { insertToken, revokeToken, noteTokenUse };

/** @returns whether no token and no customer of its tenant existed before */
export function insertToken(statements: StatementCache, token: NewToken): boolean {
  const { digest, prefix, holder, nowMs, expiresAtMs } = token;
  const isKnown = statements.get(
    "SELECT 1 FROM tokens WHERE tenant IS ?1 UNION ALL SELECT 1 FROM customers WHERE tenant = ?1 LIMIT 1",
    holder.tenant,
  );
  statements.run(
    "INSERT INTO tokens (digest, prefix, client, role, tenant, created_at, expires_at) VALUES (unhex(?), ?, ?, ?, ?, ?, ?)",
    ...[digest, prefix, holder.client, holder.role, holder.tenant, nowMs, expiresAtMs],
  );
  return holder.tenant !== null && isKnown === null;
}

function revokeToken(
  statements: StatementCache,
  { which, nowMs }: { which: WhichToken; nowMs: number },
): RevokeOutcome {
  const { condition, params } = matching(which);
  const rows = statements.all<TokenRow & { digest: Uint8Array }>(
    `SELECT digest, ${TOKEN_COLUMNS} WHERE revoked_at IS NULL AND ${condition} ORDER BY prefix`,
    ...params,
  );
  const [row, ...others] = rows;
  if (row === undefined) return { kind: "missing" };
  if (others.length > 0) return { kind: "ambiguous", tokens: rows.map(tokenRecord) };
  statements.run("UPDATE tokens SET revoked_at = ? WHERE digest = ?", nowMs, row.digest);
  return { kind: "revoked", token: tokenRecord({ ...row, revoked_at: nowMs }) };
}

function noteTokenUse(
  statements: StatementCache,
  { digest, hourMs }: { digest: string; hourMs: number },
): void {
  statements.run(
    "UPDATE tokens SET last_used_at = max(?, created_at) WHERE digest = unhex(?)",
    ...[hourMs, digest],
  );
}

function matching(which: WhichToken): { condition: string; params: Params } {
  if ("digest" in which) return { condition: "digest = unhex(?)", params: [which.digest] };
  const { prefix } = which;
  // What all tokens begin with names none: an empty argument must not revoke the only token there is.
  if (!/^cst_[A-Za-z0-9]/.test(prefix)) return { condition: "FALSE", params: [] };
  return { condition: "substr(prefix, 1, ?) = ?", params: [prefix.length, prefix] };
}
