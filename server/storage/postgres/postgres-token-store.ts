import { drawToken, isToken, tokenDigest, tokenIdOf, tokenPrefix } from "../bearer-token.ts";
import { StoreUnavailable } from "../customer-store.ts";
import type {
  Caller,
  CreatedToken,
  RevokeOutcome,
  TokenHolder,
  TokenRecord,
  TokenStore,
} from "../token-store.ts";
import { TokenUseNotes } from "../token-use-notes.ts";
import type { Param } from "./connection/lane.ts";
import type { Lanes } from "./connection/lanes.ts";
import type { BatchedReads } from "./reads/batched-reads.ts";
import {
  FIND_TOKEN_TEXT,
  INSERT_TOKEN_TEXT,
  LIST_TOKENS_TEXT,
  MATCHING_TOKENS_TEXT,
  NOTE_TOKEN_USE_TEXT,
  type PostgresTokenRow,
  REVOKE_TOKEN_TEXT,
} from "./rows/token-sql.ts";
import { type Meta, metaFault } from "./schema/migration.ts";

type FoundRow = Pick<PostgresTokenRow, "tenant" | "expires_at" | "last_used_at"> &
  Meta & {
    /** Null for a token that is unknown or revoked. */
    readonly client: string | null;
    readonly role: string | null;
  };

/**
 * Bearer tokens in PostgreSQL. Each request looks its token up, in one statement
 * for all requests of an event-loop turn: nothing is kept from one turn to the
 * next, so a token that any server revoked is refused at the next request on all.
 */
export class PostgresTokenStore implements TokenStore {
  readonly #lanes: Lanes;
  readonly #reads: BatchedReads;
  readonly #notes: TokenUseNotes;

  constructor(lanes: Lanes, reads: BatchedReads) {
    this.#lanes = lanes;
    this.#reads = reads;
    this.#notes = new TokenUseNotes((digest, hourMs) =>
      lanes.run(NOTE_TOKEN_USE_TEXT, [digest, String(hourMs)], true),
    );
  }

  async find(token: string, nowMs: number): Promise<Caller | null> {
    if (!isToken(token)) return null;
    const digest = tokenDigest(token);
    const row = await this.#reads.findShared<FoundRow>(FIND_TOKEN_TEXT, digest);
    const fault = row === null ? "the database has lost its schema" : metaFault(row);
    if (fault !== null) throw new StoreUnavailable(fault);
    if (row === null || row.client === null || row.role === null) return null;
    if (row.expires_at !== null && Number(row.expires_at) <= nowMs) return null;
    this.#notes.note(digest, Number(row.last_used_at ?? 0), nowMs);
    const { client, role, tenant } = row;
    return { tokenId: tokenIdOf(digest), client, role, tenant };
  }

  /** @param token a fresh one, of {@link drawToken} */
  async create(
    holder: TokenHolder,
    nowMs: number,
    expiresAtMs: number | null,
    token = drawToken(),
  ): Promise<CreatedToken> {
    const params = tokenParams(token, holder, nowMs, expiresAtMs);
    const [row] = await this.#lanes.run<{ is_tenant_new: boolean }>(INSERT_TOKEN_TEXT, params, false);
    return { token, isTenantNew: row?.is_tenant_new === true };
  }

  async list(): Promise<TokenRecord[]> {
    return (await this.#lanes.run<PostgresTokenRow>(LIST_TOKENS_TEXT, [], true)).map(recordOf);
  }

  async revoke(text: string, nowMs: number): Promise<RevokeOutcome> {
    if (isToken(text)) return await this.#revokeDigest(tokenDigest(text), nowMs);
    // What all tokens begin with names none: an empty argument must not revoke the only token there is.
    if (!/^cst_[A-Za-z0-9]+$/.test(text)) return { kind: "missing" };
    const rows = await this.#lanes.run<PostgresTokenRow & { digest: string }>(
      MATCHING_TOKENS_TEXT,
      [text],
      true,
    );
    const [row, ...others] = rows;
    if (row === undefined) return { kind: "missing" };
    if (others.length > 0) return { kind: "ambiguous", tokens: rows.map(recordOf) };
    return await this.#revokeDigest(row.digest, nowMs);
  }

  /** Finishes the notes under way. */
  async close(): Promise<void> {
    await this.#notes.finish();
  }

  async #revokeDigest(digest: string, nowMs: number): Promise<RevokeOutcome> {
    const [row] = await this.#lanes.run<PostgresTokenRow>(REVOKE_TOKEN_TEXT, [digest, String(nowMs)], false);
    return row === undefined ? { kind: "missing" } : { kind: "revoked", token: recordOf(row) };
  }
}

/** The parameters of {@link INSERT_TOKEN_TEXT}. */
export function tokenParams(
  token: string,
  { client, role, tenant }: TokenHolder,
  nowMs: number,
  expiresAtMs: number | null,
): Param[] {
  const expires = expiresAtMs === null ? null : String(expiresAtMs);
  return [tokenDigest(token), tokenPrefix(token), client, role, tenant, String(nowMs), expires];
}

function recordOf(row: PostgresTokenRow): TokenRecord {
  const time = (text: string | null): number | null => (text === null ? null : Number(text));
  return {
    prefix: row.prefix,
    client: row.client,
    role: row.role,
    tenant: row.tenant,
    createdAtMs: Number(row.created_at),
    expiresAtMs: time(row.expires_at),
    lastUsedAtMs: time(row.last_used_at),
    revokedAtMs: time(row.revoked_at),
  };
}
