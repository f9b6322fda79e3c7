import { FIRST_START, FIRST_TENANT, SAMPLES } from "../customers/samples.ts";
import { publish, stage, stagedToken } from "../staged-token.ts";
import type { FirstStart } from "../storage.ts";
import { drawToken, tokenDigest } from "../tokens/bearer-token.ts";
import { tokenFileOf } from "./files/token-file.ts";
import type { SharedRead } from "./read/read-transaction.ts";
import { newToken } from "./sqlite-token-store.ts";
import { createCustomer } from "./statements/customer-writes.ts";
import type { StatementCache } from "./statements/statement-cache.ts";
import { insertToken } from "./statements/token-writes.ts";

type Parts = {
  readonly read: SharedRead;
  /** Runs one transaction. Resolves once it is durable. */
  readonly transact: <T>(work: (statements: StatementCache) => T) => Promise<T>;
  readonly path: string;
};

/**
 * Makes an admin token, and customers to try things on. The token goes to a file that its owner alone can
 * read, never to a log or a terminal. Of services that start at
 * the same moment one decides: all of it is one transaction.
 *
 * @returns null when the database has tokens already
 */
export async function firstStart(
  { read, transact, path }: Parts,
  hasSamples: boolean,
  nowMs: number,
): Promise<FirstStart | null> {
  const hasTokens = read.get("SELECT 1 FROM tokens LIMIT 1") !== null;
  const tokenFile = tokenFileOf(path);
  if (hasTokens) {
    finishCutOff(read, tokenFile);
    return null;
  }
  const made = await transact((statements) => {
    if (statements.get("SELECT 1 FROM tokens LIMIT 1") !== null) return null;
    const token = drawToken();
    stage(tokenFile, token);
    return makeRows(statements, token, hasSamples, nowMs);
  });
  if (made === null) return null;
  publish(tokenFile);
  return { tokenFile, ...made };
}

function makeRows(
  statements: StatementCache,
  token: string,
  hasSamples: boolean,
  nowMs: number,
): Omit<FirstStart, "tokenFile"> {
  const isEmpty = statements.get("SELECT 1 FROM customers WHERE tenant = ? LIMIT 1", FIRST_TENANT) === null;
  insertToken(
    statements,
    newToken(token, { client: "admin", role: "admin", tenant: FIRST_TENANT }, nowMs, null),
  );
  const samples = hasSamples && isEmpty ? SAMPLES : [];
  const [first] = samples.map((customer) =>
    createCustomer(statements, { tenant: FIRST_TENANT, customer, nowMs, key: null, origin: FIRST_START }),
  );
  return { sampleId: first?.kind === "created" ? first.id : null };
}

function finishCutOff(read: SharedRead, tokenFile: string): void {
  const token = stagedToken(tokenFile);
  if (token === null) return;
  const isKnown = read.get("SELECT 1 FROM tokens WHERE digest = unhex(?)", tokenDigest(token));
  if (isKnown !== null) publish(tokenFile);
}
