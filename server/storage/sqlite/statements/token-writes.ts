import { tokenIdOf } from "../../tokens/bearer-token.ts";
import { TOKEN_COLUMNS, type TokenRow, tokenRecord } from "../../tokens/token-row.ts";
import type {
  NotOneToken,
  RevokeOutcome,
  Rotated,
  RotationTerms,
  TokenHolder,
} from "../../tokens/token-store.ts";
import type { TokenUse } from "../../tokens/token-use-notes.ts";
import type { Params, StatementCache } from "./statement-cache.ts";

export type NewToken = {
  /** SHA-256 of the token, hexadecimal. */
  readonly digest: string;
  readonly prefix: string;
  readonly holder: TokenHolder;
  readonly nowMs: number;
  readonly expiresAtMs: number | null;
};
/** A token by its digest, or by the first characters that are shown of it. */
export type WhichToken = { readonly digest: string } | { readonly prefix: string };

/** The writes on tokens, on the writer's connection inside its transaction. */
export const TOKEN_WRITES = { insertToken, revokeToken, rotateToken, noteTokenUse };

/** @returns whether no token and no customer of its tenant existed before */
export function insertToken(statements: StatementCache, token: NewToken): boolean {
  const { digest, prefix, holder, nowMs, expiresAtMs } = token;
  const isKnown = statements.get(
    "SELECT 1 FROM tokens WHERE tenant IS ?1 UNION ALL SELECT 1 FROM customers WHERE tenant = ?1 LIMIT 1",
    holder.tenant,
  );
  const { client, role, tenant, scope } = holder;
  statements.run(
    `INSERT INTO tokens (digest, prefix, client, role, tenant, scope_fields, scope_operations, created_at, expires_at)
      VALUES (unhex(?), ?, ?, ?, ?, ?, ?, ?, ?)`,
    ...[digest, prefix, client, role, tenant, scope?.fields ?? null, scope?.operations ?? null],
    ...[nowMs, expiresAtMs],
  );
  return holder.tenant !== null && isKnown === null;
}

function revokeToken(
  statements: StatementCache,
  { which, nowMs }: { which: WhichToken; nowMs: number },
): RevokeOutcome {
  const found = unrevoked(statements, which, EVER);
  if (found.kind !== "one") return found;
  const { row } = found;
  statements.run("UPDATE tokens SET revoked_at = ? WHERE digest = ?", nowMs, row.digest);
  return { kind: "revoked", token: tokenRecord({ ...row, revoked_at: nowMs }) };
}

type Rotation = {
  readonly which: WhichToken;
  /** Of the new token, as its prefix. */
  readonly digest: string;
  readonly prefix: string;
  readonly terms: RotationTerms;
  readonly nowMs: number;
};

function rotateToken(
  statements: StatementCache,
  { which, digest, prefix, terms, nowMs }: Rotation,
): Rotated | NotOneToken {
  // One that has ended must not come back by its successor.
  const found = unrevoked(statements, which, nowMs);
  if (found.kind !== "one") return found;
  const { row } = found;
  const tokenId = row.token_id ?? tokenIdOf(row.digest.toHex());
  const madeRow = statements.get<TokenRow<number>>(
    `INSERT INTO tokens (digest, prefix, client, role, tenant, scope_fields, scope_operations, created_at, expires_at, token_id)
      VALUES (unhex(?), ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING ${TOKEN_COLUMNS}`,
    ...[digest, prefix, row.client, row.role, row.tenant, row.scope_fields, row.scope_operations, nowMs],
    ...[newExpiry(lastingOf(statements, row, tokenId), terms, nowMs), tokenId],
  );
  const replacedRow = statements.get<TokenRow<number>>(
    `UPDATE tokens SET expires_at = min(coalesce(expires_at, ?1), ?1), replaced_by = ?2 WHERE digest = ?3 RETURNING ${TOKEN_COLUMNS}`,
    ...[nowMs + terms.overlapMs, prefix, row.digest],
  );
  if (madeRow === null || replacedRow === null) throw new Error("a rotated token left no row");
  return { kind: "rotated", made: tokenRecord(madeRow), replaced: tokenRecord(replacedRow) };
}

/** The end of a token that was rotated is that of its overlap; how long it was to be valid is known by the newest one. */
function lastingOf(statements: StatementCache, row: TokenRow<number>, tokenId: string): TokenRow<number> {
  if (row.replaced_by === null) return row;
  const newest = statements.get<TokenRow<number>>(
    `SELECT ${TOKEN_COLUMNS} FROM tokens WHERE token_id = ? AND replaced_by IS NULL ORDER BY created_at DESC LIMIT 1`,
    tokenId,
  );
  return newest ?? row;
}

function newExpiry(replaced: TokenRow<number>, { lifetimeMs }: RotationTerms, nowMs: number): number | null {
  if (lifetimeMs !== "same") return lifetimeMs === null ? null : nowMs + lifetimeMs;
  return replaced.expires_at === null ? null : nowMs + replaced.expires_at - replaced.created_at;
}

/** A note without an address, as from a body that took past the hour to arrive, leaves the one before. */
function noteTokenUse(statements: StatementCache, { digest, hourMs, from }: TokenUse): void {
  statements.run(
    "UPDATE tokens SET last_used_at = max(?, created_at), last_used_from = coalesce(?, last_used_from) WHERE digest = unhex(?)",
    ...[hourMs, from, digest],
  );
}

type Unrevoked =
  | { readonly kind: "one"; readonly row: TokenRow<number> & { digest: Uint8Array; token_id: string | null } }
  | NotOneToken;

/** Before any token's end: one that has ended counts too. */
const EVER = 0;

/** @returns the one that is neither revoked nor at its end by then */
function unrevoked(statements: StatementCache, which: WhichToken, thenMs: number): Unrevoked {
  const { condition, params } = matching(which);
  const rows = statements.all<TokenRow<number> & { digest: Uint8Array; token_id: string | null }>(
    `SELECT digest, token_id, ${TOKEN_COLUMNS} FROM tokens WHERE revoked_at IS NULL
      AND (expires_at IS NULL OR expires_at > ?) AND ${condition} ORDER BY prefix`,
    ...[thenMs, ...params],
  );
  const [row, ...others] = rows;
  if (row === undefined) return { kind: "missing" };
  if (others.length > 0) return { kind: "ambiguous", tokens: rows.map(tokenRecord) };
  return { kind: "one", row };
}

function matching(which: WhichToken): { condition: string; params: Params } {
  if ("digest" in which) return { condition: "digest = unhex(?)", params: [which.digest] };
  const { prefix } = which;
  // The prefix of all tokens names none of them: an empty argument must not revoke the only token.
  if (!/^cst_[A-Za-z0-9]/.test(prefix)) return { condition: "FALSE", params: [] };
  return { condition: "substr(prefix, 1, ?) = ?", params: [prefix.length, prefix] };
}
