import { storedScope } from "../../domain/policy/scope.ts";
import { StoreUnavailable } from "../customers/customer-store.ts";
import { drawToken, isToken, tokenDigest, tokenIdOf, tokenPrefix } from "../tokens/bearer-token.ts";
import { expiringOf, NOTICE_MS_MAX, stillUsedOf, tokenExpiry } from "../tokens/token-expiry.ts";
import { storedTime, TOKEN_COLUMNS, type TokenRow, tokenRecord } from "../tokens/token-row.ts";
import type { NotOneToken, TokenHolder, TokenStore } from "../tokens/token-store.ts";
import { TokenUseNotes } from "../tokens/token-use-notes.ts";
import type { Param } from "./connection/lane.ts";
import type { Lanes } from "./connection/lanes.ts";
import type { BatchedReads } from "./reads/batched-reads.ts";
import { FIND_TOKEN_TEXT, INSERT_TOKEN_TEXT, qualified, ROTATE_TOKEN_TEXT } from "./rows/token-sql.ts";
import { type Meta, metaFault } from "./schema/migration.ts";

type OverlapRow = TokenRow & {
  readonly rotated_at: string;
  readonly replacement_used_at: string | null;
};

type FoundRow = Meta &
  (
    | (TokenRow & { readonly token_id: string | null })
    /** A token that is unknown or revoked. */
    | { readonly client: null }
  );

/**
 * Bearer tokens in PostgreSQL. Each request looks its token up, in one statement
 * for all requests of an event-loop turn: nothing is kept from one turn to the
 * next, so a token that any server revoked is refused at the next request on all.
 */
export function postgresTokenStore(lanes: Lanes, reads: BatchedReads) {
  const notes = new TokenUseNotes(({ digest, hourMs, from }) =>
    // Many servers may see the first use of a token in an hour; only one of them writes.
    lanes.run(
      `UPDATE tokens SET last_used_at = greatest($2::bigint, created_at), last_used_from = coalesce($3::text, last_used_from)
        WHERE digest = decode($1::text, 'hex') AND (last_used_at IS NULL OR last_used_at < greatest($2::bigint, created_at))`,
      [digest, String(hourMs), from],
    ),
  );
  return {
    async find(token, nowMs, address?) {
      if (!isToken(token)) return null;
      const digest = tokenDigest(token);
      const row = await reads.findShared<FoundRow>(FIND_TOKEN_TEXT, digest);
      const fault = row === null ? "the database has lost its schema" : metaFault(row);
      if (fault !== null) throw new StoreUnavailable(fault);
      if (row === null || row.client === null) return null;
      const expiry = tokenExpiry(Number(row.created_at), storedTime(row.expires_at));
      if (expiry !== null && expiry.atMs <= nowMs) return null;
      notes.note(digest, Number(row.last_used_at ?? 0), nowMs, address);
      const { client, role, tenant } = row;
      const scope = storedScope(row.scope_fields, row.scope_operations);
      const tokenId = row.token_id ?? tokenIdOf(digest);
      return { tokenId, tokenPrefix: tokenPrefix(token), client, role, tenant, scope, expiry };
    },

    async create(holder, nowMs, expiresAtMs) {
      const token = drawToken();
      const params = tokenParams(token, holder, nowMs, expiresAtMs);
      const [row] = await lanes.runOnce<{ is_tenant_new: boolean }>(INSERT_TOKEN_TEXT, params);
      return { token, isTenantNew: row?.is_tenant_new === true };
    },

    async list() {
      const text = `SELECT ${TOKEN_COLUMNS} FROM tokens ORDER BY created_at, prefix`;
      return (await lanes.run<TokenRow>(text, [])).map(tokenRecord);
    },

    async expiring(nowMs) {
      const text = `SELECT ${TOKEN_COLUMNS} FROM tokens WHERE revoked_at IS NULL AND replaced_by IS NULL
        AND expires_at > $1::bigint AND expires_at <= $2::bigint ORDER BY expires_at, prefix`;
      const params = [String(nowMs), String(nowMs + NOTICE_MS_MAX)];
      const rows = await lanes.run<TokenRow>(text, params);
      return expiringOf(rows.map(tokenRecord), nowMs);
    },

    async stillUsed(nowMs) {
      const text = `SELECT ${qualified("old")}, made.created_at AS rotated_at, made.last_used_at AS replacement_used_at
        FROM tokens old JOIN tokens made ON made.prefix = old.replaced_by
        WHERE old.revoked_at IS NULL AND old.expires_at > $1::bigint ORDER BY old.expires_at, old.prefix`;
      const rows = await lanes.run<OverlapRow>(text, [String(nowMs)]);
      const overlaps = rows.map((row) => ({
        token: tokenRecord(row),
        rotatedAtMs: Number(row.rotated_at),
        replacementUsedAtMs: storedTime(row.replacement_used_at),
      }));
      return stillUsedOf(overlaps, nowMs);
    },

    async revoke(text, nowMs) {
      // Expired tokens may be revoked too.
      const which = await digestOf(lanes, text, 0);
      if (typeof which !== "string") return which;
      const sql = `UPDATE tokens SET revoked_at = $2::bigint
        WHERE digest = decode($1::text, 'hex') AND revoked_at IS NULL RETURNING ${TOKEN_COLUMNS}`;
      const [row] = await lanes.runOnce<TokenRow>(sql, [which, String(nowMs)]);
      return row === undefined ? { kind: "missing" } : { kind: "revoked", token: tokenRecord(row) };
    },

    async rotate(text, terms, nowMs) {
      const which = await digestOf(lanes, text, nowMs);
      if (typeof which !== "string") return which;
      const token = drawToken();
      const { overlapMs, lifetimeMs } = terms;
      const isSame = lifetimeMs === "same";
      const expiresAtMs = isSame || lifetimeMs === null ? null : String(nowMs + lifetimeMs);
      const [made, replaced] = await lanes.runOnce<TokenRow>(ROTATE_TOKEN_TEXT, [
        ...[which, tokenDigest(token), tokenPrefix(token), String(nowMs)],
        ...[String(nowMs + overlapMs), expiresAtMs, String(isSame)],
      ]);
      if (made === undefined || replaced === undefined) return { kind: "missing" };
      return { kind: "rotated", token, made: tokenRecord(made), replaced: tokenRecord(replaced) };
    },

    /** Finishes the notes under way. */
    async close() {
      await notes.finish();
    },
  } satisfies TokenStore & { close(): Promise<void> };
}

/** @param text the whole token, or the first characters of one that is neither revoked nor at its end by then */
async function digestOf(lanes: Lanes, text: string, thenMs: number): Promise<string | NotOneToken> {
  if (isToken(text)) return tokenDigest(text);
  // The prefix of all tokens names none of them: an empty argument must not revoke the only token.
  if (!/^cst_[A-Za-z0-9]+$/.test(text)) return { kind: "missing" };
  const rows = await lanes.run<TokenRow & { digest: string }>(
    `SELECT encode(digest, 'hex') AS digest, ${TOKEN_COLUMNS} FROM tokens
      WHERE revoked_at IS NULL AND (expires_at IS NULL OR expires_at > $2::bigint) AND starts_with(prefix, $1::text)
      ORDER BY prefix`,
    [text, String(thenMs)],
  );
  const [row, ...others] = rows;
  if (row === undefined) return { kind: "missing" };
  if (others.length > 0) return { kind: "ambiguous", tokens: rows.map(tokenRecord) };
  return row.digest;
}

/** The parameters of {@link INSERT_TOKEN_TEXT}. */
export function tokenParams(
  token: string,
  { client, role, tenant, scope }: TokenHolder,
  nowMs: number,
  expiresAtMs: number | null,
): Param[] {
  const expires = expiresAtMs === null ? null : String(expiresAtMs);
  const rights = [client, role, tenant, scope?.fields ?? null, scope?.operations ?? null];
  return [tokenDigest(token), tokenPrefix(token), ...rights, String(nowMs), expires];
}
