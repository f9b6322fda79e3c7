import type { SqliteConnections } from "./sqlite-connections.ts";
import type { Params } from "./statement-cache.ts";

/** Who calls: what a token carries. A token without a tenant is for metrics alone. */
export type Caller = { readonly client: string; readonly role: string; readonly tenant: string | null };

/** A token as it is listed: never the token itself, of which only a digest is kept. Times in ms since 1970. */
export type TokenRecord = Caller & {
  readonly prefix: string;
  readonly createdAtMs: number;
  readonly expiresAtMs: number | null;
  /** To the hour. */
  readonly lastUsedAtMs: number | null;
  readonly revokedAtMs: number | null;
};

export type RevokeOutcome =
  | { readonly kind: "revoked"; readonly token: TokenRecord }
  | { readonly kind: "missing" }
  | { readonly kind: "ambiguous"; readonly tokens: readonly TokenRecord[] };

const TOKEN = /^cst_[A-Za-z0-9]{40}$/;
const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const RANDOM_CHARACTERS = 40;
/** So much of a token is shown in lists: enough to tell tokens apart, far too little to guess one. */
const PREFIX_CHARACTERS = 12;
const HOUR_MS = 3_600_000;

const COLUMNS = "prefix, client, role, tenant, created_at, expires_at, last_used_at, revoked_at FROM tokens";
type Row = {
  prefix: string;
  client: string;
  role: string;
  tenant: string | null;
  created_at: number;
  expires_at: number | null;
  last_used_at: number | null;
  revoked_at: number | null;
};

type FoundToken = {
  readonly caller: Caller;
  readonly digest: Uint8Array;
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
    await this.#connections.write.run(() => this.#insert(token, caller, nowMs, expiresAtMs));
    return token;
  }

  list(): TokenRecord[] {
    return this.#connections.read
      .run(() => this.#connections.reader.all<Row>(`SELECT ${COLUMNS} ORDER BY created_at, prefix`))
      .map(record);
  }

  /** @param text the first characters of a token, as listed, or the whole token */
  revoke(text: string, nowMs: number): Promise<RevokeOutcome> {
    const { writer, write } = this.#connections;
    return write.run((): RevokeOutcome => {
      const { condition, params } = matching(text);
      const rows = writer.all<Row & { digest: Uint8Array }>(
        `SELECT digest, ${COLUMNS} WHERE revoked_at IS NULL AND ${condition} ORDER BY prefix`,
        ...params,
      );
      const [row, ...others] = rows;
      if (row === undefined) return { kind: "missing" };
      if (others.length > 0) return { kind: "ambiguous", tokens: rows.map(record) };
      writer.run("UPDATE tokens SET revoked_at = ? WHERE digest = ?", nowMs, row.digest);
      return { kind: "revoked", token: record({ ...row, revoked_at: nowMs }) };
    });
  }

  #look(token: string): FoundToken | null {
    const { epoch } = this.#connections.read;
    if (epoch !== this.#epoch || this.#found.size >= FOUND_MAX) this.#found.clear();
    this.#epoch = epoch;
    const known = this.#found.get(token);
    if (known !== undefined) return known;
    const digest = digestOf(token);
    const row = this.#connections.reader.get<Row>(`SELECT ${COLUMNS} WHERE digest = ?`, digest);
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

  #insert(token: string, { client, role, tenant }: Caller, nowMs: number, expiresAtMs: number | null): void {
    this.#connections.writer.run(
      "INSERT INTO tokens (digest, prefix, client, role, tenant, created_at, expires_at) VALUES (?, ?, ?, ?, ?, ?, ?)",
      ...[digestOf(token), token.slice(0, PREFIX_CHARACTERS), client, role, tenant, nowMs, expiresAtMs],
    );
  }

  #noteUse({ digest, prefix, lastUsedAtMs }: FoundToken, nowMs: number): void {
    const hour = nowMs - (nowMs % HOUR_MS);
    if (lastUsedAtMs >= hour || this.#notedHours.get(prefix) === hour) return;
    this.#notedHours.set(prefix, hour);
    this.#connections.write
      .run(() =>
        this.#connections.writer.run("UPDATE tokens SET last_used_at = ? WHERE digest = ?", hour, digest),
      )
      // Only a hint for operators: a locked or full disk must not fail the request. The next use tries again.
      .catch(() => this.#notedHours.delete(prefix));
  }
}

/** A new token: `cst_` and 40 characters drawn at random (238 bits). */
export function drawToken(): string {
  return `cst_${randomText(RANDOM_CHARACTERS)}`;
}

function matching(text: string): { condition: string; params: Params } {
  if (TOKEN.test(text)) return { condition: "digest = ?", params: [digestOf(text)] };
  // What all tokens begin with names none: an empty argument must not revoke the only token there is.
  if (!/^cst_[A-Za-z0-9]/.test(text)) return { condition: "FALSE", params: [] };
  return { condition: "substr(prefix, 1, ?) = ?", params: [text.length, text] };
}

function record(row: Row): TokenRecord {
  return {
    prefix: row.prefix,
    client: row.client,
    role: row.role,
    tenant: row.tenant,
    createdAtMs: row.created_at,
    expiresAtMs: row.expires_at,
    lastUsedAtMs: row.last_used_at,
    revokedAtMs: row.revoked_at,
  };
}

function digestOf(token: string): Uint8Array {
  return Bun.SHA256.hash(token) as Uint8Array;
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
