import { drawToken, isToken, tokenDigest, tokenPrefix } from "../bearer-token.ts";
import type {
  Caller,
  CreatedToken,
  RevokeOutcome,
  TokenHolder,
  TokenRecord,
  TokenStore,
} from "../token-store.ts";
import type { SqliteConnections } from "./connections.ts";
import { TOKEN_COLUMNS, type TokenRow, tokenRecord } from "./statements/token-rows.ts";
import type { NewToken } from "./statements/token-writes.ts";

const HOUR_MS = 3_600_000;
/** After a use could not be noted. A full disk would otherwise cost every GET a write that fails. */
const NOTE_RETRY_MS = 60_000;
/** 128 of the digest's 256 bits name a token. */
const TOKEN_ID_CHARACTERS = 32;

type FoundToken = {
  readonly caller: Caller;
  readonly digest: string;
  readonly expiresAtMs: number;
  readonly lastUsedAtMs: number;
};
/** The most tokens kept between two commits. */
const FOUND_MAX = 10_000;

/** Bearer tokens in SQLite. */
export class SqliteTokenStore implements TokenStore {
  readonly #connections: SqliteConnections;
  /** The tokens whose use in this hour was noted here, so that a token costs one write an hour. */
  #noted = { hourMs: 0, tokenIds: new Set<string>() };
  #retryNotesAtMs = 0;

  /**
   * What was found under the current epoch of the database, so that only a
   * commit costs a look-up: without it the code of a read takes 10.5 µs for 8.4.
   */
  readonly #found = new Map<string, FoundToken>();
  #epoch = -1;

  constructor(connections: SqliteConnections) {
    this.#connections = connections;
  }

  /** Holds as of the transaction that reads share. */
  find(token: string, nowMs: number): Caller | null {
    if (!isToken(token)) return null;
    const found = this.#connections.read.run(() => this.#look(token));
    if (found === null || found.expiresAtMs <= nowMs) return null;
    this.#noteUse(found, nowMs);
    return found.caller;
  }

  /** @param token a fresh one, of {@link drawToken} */
  async create(
    holder: TokenHolder,
    nowMs: number,
    expiresAtMs: number | null,
    token = drawToken(),
  ): Promise<CreatedToken> {
    const isTenantNew = await this.#connections.write.run(
      "insertToken",
      newToken(token, holder, nowMs, expiresAtMs),
    );
    return { token, isTenantNew };
  }

  list(): TokenRecord[] {
    return this.#connections.read
      .run(() =>
        this.#connections.reader.all<TokenRow>(`SELECT ${TOKEN_COLUMNS} ORDER BY created_at, prefix`),
      )
      .map(tokenRecord);
  }

  revoke(text: string, nowMs: number): Promise<RevokeOutcome> {
    const which = isToken(text) ? { digest: tokenDigest(text) } : { prefix: text };
    return this.#connections.write.run("revokeToken", { which, nowMs });
  }

  #look(token: string): FoundToken | null {
    const { epoch } = this.#connections.read;
    if (epoch !== this.#epoch || this.#found.size >= FOUND_MAX) this.#found.clear();
    this.#epoch = epoch;
    const known = this.#found.get(token);
    if (known !== undefined) return known;
    const digest = tokenDigest(token);
    const row = this.#connections.reader.get<TokenRow>(
      `SELECT ${TOKEN_COLUMNS} WHERE digest = unhex(?)`,
      digest,
    );
    if (row === null || row.revoked_at !== null) return null;
    const { client, role, tenant, expires_at, last_used_at } = row;
    const found = {
      caller: { tokenId: digest.slice(0, TOKEN_ID_CHARACTERS), client, role, tenant },
      digest,
      expiresAtMs: expires_at ?? Number.POSITIVE_INFINITY,
      lastUsedAtMs: last_used_at ?? 0,
    };
    this.#found.set(token, found);
    return found;
  }

  #noteUse({ caller, digest, lastUsedAtMs }: FoundToken, nowMs: number): void {
    const hourMs = nowMs - (nowMs % HOUR_MS);
    if (lastUsedAtMs >= hourMs || nowMs < this.#retryNotesAtMs) return;
    if (this.#noted.hourMs !== hourMs || this.#noted.tokenIds.size >= FOUND_MAX) {
      this.#noted = { hourMs, tokenIds: new Set() };
    }
    const { tokenIds } = this.#noted;
    if (tokenIds.has(caller.tokenId)) return;
    tokenIds.add(caller.tokenId);
    this.#connections.write
      .run("noteTokenUse", { digest, hourMs })
      // Only a hint for operators: a locked or full disk must not fail the request.
      .catch(() => {
        tokenIds.delete(caller.tokenId);
        this.#retryNotesAtMs = nowMs + NOTE_RETRY_MS;
      });
  }
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
