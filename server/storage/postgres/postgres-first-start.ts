import { mkdirSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { FIRST_START, FIRST_TENANT, SAMPLES } from "../customers/samples.ts";
import { publish, stage, stagedToken } from "../staged-token.ts";
import type { FirstStart } from "../storage.ts";
import { drawToken, tokenDigest } from "../tokens/bearer-token.ts";
import type { LaneConnection } from "./connection/lane.ts";
import type { Lanes } from "./connection/lanes.ts";
import { tokenParams } from "./postgres-token-store.ts";
import { INSERT_TOKEN_TEXT } from "./rows/token-sql.ts";
import { createOf } from "./writes/customer-kinds.ts";
import { attempt } from "./writes/write-attempt.ts";

/** Where the first of many servers writes the admin token: on its own machine. */
const TOKEN_FILE = "data/admin.token";

/**
 * Makes an admin token, and customers to try things on. Of servers that
 * start at the same moment one decides: the row of `meta` is locked first.
 *
 * @returns null when the database has tokens already
 */
export async function postgresFirstStart(
  lanes: Lanes,
  hasSamples: boolean,
  nowMs: number,
): Promise<FirstStart | null> {
  const tokenFile = resolve(TOKEN_FILE);
  // Safe to repeat: it then finds its own token, and the staged file is published.
  const made = await lanes.transact(async (transaction) => {
    if (await hasTokens(transaction)) return null;
    await transaction.run("UPDATE meta SET only_row = only_row", []);
    if (await hasTokens(transaction)) return null;
    const token = drawToken();
    mkdirSync(dirname(tokenFile), { recursive: true, mode: 0o700 });
    stage(tokenFile, token);
    return await makeRows(transaction, token, hasSamples, nowMs);
  });
  if (made !== null) {
    publish(tokenFile);
    return { tokenFile, ...made };
  }
  await lanes.transact((transaction) => finishCutOff(transaction, tokenFile));
  return null;
}

async function hasTokens(transaction: LaneConnection): Promise<boolean> {
  return (await transaction.run("SELECT 1 FROM tokens LIMIT 1", [])).length > 0;
}

async function makeRows(
  transaction: LaneConnection,
  token: string,
  hasSamples: boolean,
  nowMs: number,
): Promise<Omit<FirstStart, "tokenFile">> {
  const holder = { client: "admin", role: "admin", tenant: FIRST_TENANT };
  await transaction.run(INSERT_TOKEN_TEXT, tokenParams(token, holder, nowMs, null));
  const customers = await transaction.run("SELECT 1 FROM customers WHERE tenant = $1 LIMIT 1", [
    FIRST_TENANT,
  ]);
  if (!hasSamples || customers.length > 0) return { sampleId: null };
  const samples = SAMPLES.map((sample) => ({
    write: createOf(FIRST_TENANT, sample, nowMs, null, FIRST_START),
    wasUnknown: false,
  }));
  const [first] = await attempt(transaction, samples, true);
  const isMade = first?.kind === "settled" && first.outcome.kind === "created";
  return { sampleId: isMade ? first.outcome.id : null };
}

async function finishCutOff(transaction: LaneConnection, tokenFile: string): Promise<void> {
  const token = stagedToken(tokenFile);
  if (token === null) return;
  const known = await transaction.run("SELECT 1 FROM tokens WHERE digest = decode($1::text, 'hex')", [
    tokenDigest(token),
  ]);
  if (known.length > 0) publish(tokenFile);
}
