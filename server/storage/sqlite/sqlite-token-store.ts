import { storedScope } from "../../domain/policy/scope.ts";
import { drawToken, isToken, tokenDigest, tokenIdOf, tokenPrefix } from "../tokens/bearer-token.ts";
import { expiringOf, NOTICE_MS_MAX, stillUsedOf, tokenExpiry } from "../tokens/token-expiry.ts";
import { TOKEN_COLUMNS, type TokenRow, tokenRecord } from "../tokens/token-row.ts";
import type { Caller, TokenHolder, TokenStore } from "../tokens/token-store.ts";
import { TokenUseNotes } from "../tokens/token-use-notes.ts";
import type { WriteQueue } from "./commit/write-queue.ts";
import type { SharedRead } from "./read/read-transaction.ts";
import type { NewToken, WhichToken } from "./statements/token-writes.ts";

type FoundToken = {
  readonly caller: Caller;
  readonly digest: string;
  readonly expiresAtMs: number;
  readonly lastUsedAtMs: number;
};
type OverlapRow = TokenRow<number> & {
  readonly rotated_at: number;
  readonly replacement_used_at: number | null;
};
type FoundRow = TokenRow<number> & { readonly token_id: string | null };
const FIND_SQL = `SELECT token_id, ${TOKEN_COLUMNS} FROM tokens WHERE digest = unhex(?)`;
const EXPIRING_SQL = `SELECT ${TOKEN_COLUMNS} FROM tokens
  WHERE revoked_at IS NULL AND replaced_by IS NULL AND expires_at > ? AND expires_at <= ? ORDER BY expires_at, prefix`;
const OVERLAPS_SQL = `SELECT old.*, made.created_at AS rotated_at, made.last_used_at AS replacement_used_at
  FROM tokens old JOIN tokens made ON made.prefix = old.replaced_by
  WHERE old.revoked_at IS NULL AND old.expires_at > ? ORDER BY old.expires_at, old.prefix`;
/** The most tokens kept between two commits. */
const FOUND_MAX = 10_000;

/** Bearer tokens in SQLite. */
export function sqliteTokenStore(read: SharedRead, write: WriteQueue) {
  const notes = new TokenUseNotes((use) => write.run("noteTokenUse", use));
  const look = lookUp(read);
  return {
    /** Holds as of the transaction that reads share. */
    find(token, nowMs, address?) {
      if (!isToken(token)) return null;
      const found = read.run(() => look(token));
      if (found === null || found.expiresAtMs <= nowMs) return null;
      notes.note(found.digest, found.lastUsedAtMs, nowMs, address);
      return found.caller;
    },

    async create(holder, nowMs, expiresAtMs) {
      const token = drawToken();
      const isTenantNew = await write.run("insertToken", newToken(token, holder, nowMs, expiresAtMs));
      return { token, isTenantNew };
    },

    list() {
      const sql = `SELECT ${TOKEN_COLUMNS} FROM tokens ORDER BY created_at, prefix`;
      return read.all<TokenRow>(sql).map(tokenRecord);
    },

    expiring(nowMs) {
      const rows = read.all<TokenRow>(EXPIRING_SQL, nowMs, nowMs + NOTICE_MS_MAX);
      return expiringOf(rows.map(tokenRecord), nowMs);
    },

    stillUsed(nowMs) {
      const overlaps = read.all<OverlapRow>(OVERLAPS_SQL, nowMs).map((row) => ({
        token: tokenRecord(row),
        rotatedAtMs: row.rotated_at,
        replacementUsedAtMs: row.replacement_used_at,
      }));
      return stillUsedOf(overlaps, nowMs);
    },

    revoke: (text, nowMs) => write.run("revokeToken", { which: whichToken(text), nowMs }),

    async rotate(text, terms, nowMs) {
      const token = drawToken();
      const names = { digest: tokenDigest(token), prefix: tokenPrefix(token) };
      const outcome = await write.run("rotateToken", { which: whichToken(text), ...names, terms, nowMs });
      return outcome.kind === "rotated" ? { ...outcome, token } : outcome;
    },
  } satisfies TokenStore;
}

/**
 * What was found is kept under the current epoch of the database, so that only a commit costs a look-up, and
 * of those that change customers only what others commit: without it a GET takes 47 µs for 42.
 */
function lookUp(read: SharedRead): (token: string) => FoundToken | null {
  const kept = new Map<string, FoundToken>();
  let keptEpoch = -1;
  return (token) => {
    const { epoch } = read;
    if (epoch !== keptEpoch || kept.size >= FOUND_MAX) kept.clear();
    keptEpoch = epoch;
    const known = kept.get(token);
    if (known !== undefined) return known;
    const digest = tokenDigest(token);
    const row = read.get<FoundRow>(FIND_SQL, digest);
    if (row === null || row.revoked_at !== null) return null;
    const { client, role, tenant, created_at, expires_at, last_used_at } = row;
    const found = {
      caller: {
        ...{ tokenId: row.token_id ?? tokenIdOf(digest), tokenPrefix: row.prefix, client, role, tenant },
        scope: storedScope(row.scope_fields, row.scope_operations),
        expiry: tokenExpiry(created_at, expires_at),
      },
      digest,
      expiresAtMs: expires_at ?? Number.POSITIVE_INFINITY,
      lastUsedAtMs: last_used_at ?? 0,
    };
    kept.set(token, found);
    return found;
  };
}

function whichToken(text: string): WhichToken {
  return isToken(text) ? { digest: tokenDigest(text) } : { prefix: text };
}

/** A token as it is stored. */
export function newToken(
  token: string,
  holder: TokenHolder,
  nowMs: number,
  expiresAtMs: number | null,
): NewToken {
  return { digest: tokenDigest(token), prefix: tokenPrefix(token), holder, nowMs, expiresAtMs };
}
