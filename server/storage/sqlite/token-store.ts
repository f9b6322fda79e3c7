import type { SqliteConnections } from "./connections.ts";
import {
  type Caller,
  type RevokeOutcome,
  TOKEN_COLUMNS,
  type TokenRecord,
  type TokenRow,
  tokenRecord,
} from "./token-rows.ts";
import type { NewToken } from "./token-writes.ts";

const TOKEN = /^cst_[A-Za-z0-9]{40}$/;
const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const RANDOM_CHARACTERS = 40;
/** So much of a token is shown in lists: enough to tell tokens apart, far too little to guess one. */
const PREFIX_CHARACTERS = 12;
const HOUR_MS = 3_600_000;

type FoundToken = {
  readonly caller: Caller;
  readonly digest: string;
  readonly prefix: string;
  readonly expiresAtMs: number;
  readonly lastUsedAtMs: number;
};
/** The most tokens kept between two commits. */
const FOUND_MAX = 10_000;

/** Bearer tokens: made here, shown once, stored as SHA-256 digests. */
export class TokenStore {
  readonly #connections: SqliteConnections;
  /** The hour in which each token's use was last noted here, so that a token costs one write an hour. */
  readonly #notedHours = new Map<string, number>();

  /** What was found under the current epoch of the database, so that only a commit costs a look-up. */
  readonly #found = new Map<string, FoundToken>();
  #epoch = -1;

  constructor(connections: SqliteConnections) {
    this.#connections = connections;
  }

  /**
   * Holds as of the transaction that reads share: a token that was revoked is refused at the next request.
   *
   * @returns the caller; null for what is no token, or an unknown, revoked or expired one
   */
  find(token: string, nowMs: number): Caller | null {
    if (!TOKEN.test(token)) return null;
    const found = this.#connections.read.run(() => this.#look(token));
    if (found === null || found.expiresAtMs <= nowMs) return null;
    this.#noteUse(found, nowMs);
    return found.caller;
  }

  /**
   * @param token a fresh one, of {@link drawToken}
   * @returns the token, which can't be had again
   */
  async create(
    caller: Caller,
    nowMs: number,
    expiresAtMs: number | null,
    token = drawToken(),
  ): Promise<string> {
    await this.#connections.write.run("insertToken", newToken(token, caller, nowMs, expiresAtMs));
    return token;
  }

  list(): TokenRecord[] {
    return this.#connections.read
      .run(() =>
        this.#connections.reader.all<TokenRow>(`SELECT ${TOKEN_COLUMNS} ORDER BY created_at, prefix`),
      )
      .map(tokenRecord);
  }

  /** @param text the first characters of a token, as listed, or the whole token */
  revoke(text: string, nowMs: number): Promise<RevokeOutcome> {
    const which = TOKEN.test(text) ? { digest: digestOf(text) } : { prefix: text };
    return this.#connections.write.run("revokeToken", { which, nowMs });
  }

  #look(token: string): FoundToken | null {
    const { epoch } = this.#connections.read;
    if (epoch !== this.#epoch || this.#found.size >= FOUND_MAX) this.#found.clear();
    this.#epoch = epoch;
    const known = this.#found.get(token);
    if (known !== undefined) return known;
    const digest = digestOf(token);
    const row = this.#connections.reader.get<TokenRow>(
      `SELECT ${TOKEN_COLUMNS} WHERE digest = unhex(?)`,
      digest,
    );
    if (row === null || row.revoked_at !== null) return null;
    const { client, role, tenant, expires_at, last_used_at } = row;
    const found = {
      caller: { client, role, tenant },
      digest,
      prefix: row.prefix,
      expiresAtMs: expires_at ?? Number.POSITIVE_INFINITY,
      lastUsedAtMs: last_used_at ?? 0,
    };
    this.#found.set(token, found);
    return found;
  }

  #noteUse({ digest, prefix, lastUsedAtMs }: FoundToken, nowMs: number): void {
    const hour = nowMs - (nowMs % HOUR_MS);
    if (lastUsedAtMs >= hour || this.#notedHours.get(prefix) === hour) return;
    this.#notedHours.set(prefix, hour);
    this.#connections.write
      .run("noteTokenUse", { digest, hourMs: hour })
      // Only a hint for operators: a locked or full disk must not fail the request. The next use tries again.
      .catch(() => this.#notedHours.delete(prefix));
  }
}

/** A token as it is stored. */
export function newToken(token: string, caller: Caller, nowMs: number, expiresAtMs: number | null): NewToken {
  return { digest: digestOf(token), prefix: token.slice(0, PREFIX_CHARACTERS), caller, nowMs, expiresAtMs };
}

/** A new token: `cst_` and 40 characters drawn at random (238 bits). */
export function drawToken(): string {
  return `cst_${randomText(RANDOM_CHARACTERS)}`;
}

function digestOf(token: string): string {
  return Bun.SHA256.hash(token, "hex");
}

/** Characters drawn evenly: a byte past the last whole multiple of the alphabet is drawn again. */
function randomText(length: number): string {
  const limit = 256 - (256 % ALPHABET.length);
  let text = "";
  while (text.length < length) {
    for (const byte of crypto.getRandomValues(new Uint8Array(length))) {
      if (byte < limit && text.length < length) text += ALPHABET[byte % ALPHABET.length];
    }
  }
  return text;
}
