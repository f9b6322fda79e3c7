import { mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { NO_BODY } from "../../domain/projection.ts";
import { drawToken } from "../bearer-token.ts";
import type { FirstStart } from "../storage.ts";
import type { SqliteConnections } from "./connections.ts";
import { SqliteCustomerStore } from "./sqlite-customer-store.ts";
import { MEMORY } from "./sqlite-database.ts";
import { newToken, SqliteTokenStore } from "./sqlite-token-store.ts";

const TENANT = "default";

const SAMPLES = [
  { name: "Ada Lovelace", email: "ada@example.com", status: "active" },
  { name: "Grace Hopper", email: "grace@example.com", status: "active" },
  { name: "Zoë Ångström", email: "zoe@example.com", status: "suspended" },
] as const;

/**
 * Makes an admin token, and customers to try things on. The token goes to a file that its owner alone can
 * read, never to a log or a terminal.
 *
 * @returns null when the database has tokens already
 */
export async function firstStart(
  connections: SqliteConnections,
  databasePath: string,
  hasSamples: boolean,
  nowMs: number,
): Promise<FirstStart | null> {
  if (new SqliteTokenStore(connections).list().length > 0) return null;
  const filter = { tenant: TENANT, after: null, limit: 1, status: null, email: null };
  const isEmpty = new SqliteCustomerStore(connections).page(filter, NO_BODY).items.length === 0;
  const samples = hasSamples && isEmpty ? SAMPLES : [];
  const tokenFile = tokenFileOf(databasePath);
  const token = drawToken();
  // The file first: a token that counts and is nowhere to be read would lock its owner out.
  writeSecret(tokenFile, token);
  const admin = { client: "admin", role: "admin", tenant: TENANT };
  const [first] = await connections.write.run("makeFirstRows", {
    token: newToken(token, admin, nowMs, null),
    customers: samples.map((customer) => ({ tenant: TENANT, customer, nowMs, key: null })),
  });
  const sampleId = first?.kind === "created" ? first.id : null;
  return { tokenFile, sampleId };
}

/** Beside the database, absolute, so that a line that reads it can be pasted anywhere; for one in memory in a directory of its own, which goes when the process ends. */
function tokenFileOf(databasePath: string): string {
  if (databasePath !== MEMORY) return join(dirname(resolve(databasePath)), "admin.token");
  const directory = mkdtempSync(join(tmpdir(), "customers-"));
  process.on("exit", () => rmSync(directory, { recursive: true, force: true }));
  return join(directory, "admin.token");
}

function writeSecret(file: string, secret: string): void {
  const partial = `${file}.partial`;
  rmSync(partial, { force: true });
  writeFileSync(partial, `${secret}\n`, { mode: 0o600, flag: "wx", flush: true });
  renameSync(partial, file);
}
