/**
 * What batches are compared with: the same service on the same tables, whose reads and PUTs are a statement each,
 * through pg and its pool: `bun one-statement-service.ts URL` prints `{"url":…}`. A token is asked for once, and
 * then known for good: the service that it is compared with looks each up, and would otherwise send half as many.
 */
import { Pool, type QueryResult } from "pg";
import packageJson from "../../package.json";
import { createApp } from "../app.ts";
import { BUILT_IN_POLICY, readPolicyText } from "../config/policy-file.ts";
import type { CustomerFields } from "../domain/customer/customer.ts";
import { foldEmail } from "../domain/customer/email.ts";
import { drawRowVersion, type RowVersion } from "../domain/entity-tag.ts";
import { andThen } from "../domain/maybe-promise.ts";
import { pick } from "../domain/pick.ts";
import { Cors } from "../http/cors.ts";
import { CallerLimits } from "../http/limits/caller-limits.ts";
import { SignIn } from "../issuers/sign-in.ts";
import { Listener } from "../listener.ts";
import type { CustomerStore } from "../storage/customers/customer-store.ts";
import { PostgresStorage } from "../storage/postgres/postgres-storage.ts";
import type { Caller, TokenStore } from "../storage/tokens/token-store.ts";
import { openLog } from "../telemetry/log/log.ts";
import { Metrics } from "../telemetry/metrics/metrics.ts";

/** What pg takes by default. */
const CONNECTIONS = 10;

type Row = CustomerFields & { readonly row_version: RowVersion };

function oneStatementEach(batched: CustomerStore, pool: Pool): CustomerStore {
  const run = (name: string, text: string, values: string[]): Promise<QueryResult<Row>> =>
    pool.query<Row>({ name, text, values });
  return {
    cursorKey: batched.cursorKey,
    rowVersion: batched.rowVersion.bind(batched),
    page: batched.page.bind(batched),
    create: batched.create.bind(batched),
    remove: batched.remove.bind(batched),
    isKeyUsed: batched.isKeyUsed.bind(batched),
    purgeKeys: batched.purgeKeys.bind(batched),
    read: async (tenant, id, projection) => {
      const columns = [...projection.fields, "row_version"].join(", ");
      const text = `SELECT ${columns} FROM customers WHERE tenant = $1 AND id = $2`;
      const [row] = (await run(columns, text, [tenant, id])).rows;
      return row === undefined ? null : { rowVersion: row.row_version, fields: pick(row, projection) };
    },
    update: async ({ tenant, id, expected }, { name = "", email = "" }) => {
      if (typeof expected !== "string") throw new Error("the load always names a version");
      const text =
        "UPDATE customers SET name = $4, email = $5, email_folded = $6, row_version = $7 WHERE tenant = $1 AND id = $2 AND row_version = $3";
      const next = drawRowVersion();
      const { rowCount } = await run("put", text, [
        tenant,
        id,
        expected,
        name,
        email,
        foldEmail(email),
        next,
      ]);
      if (rowCount !== 1) throw new Error("the load writes each customer from one connection");
      return { kind: "applied", rowVersion: next, fields: null, isReplayed: false };
    },
  };
}

/** Asks for each token once. */
function knownForGood(tokens: TokenStore): Pick<TokenStore, "find"> {
  const known = new Map<string, Caller>();
  return {
    find: (token, nowMs) =>
      known.get(token) ??
      andThen(tokens.find(token, nowMs), (caller) => {
        if (caller !== null) known.set(token, caller);
        return caller;
      }),
  };
}

const [, , databaseUrl = ""] = process.argv;
const port = Number(process.env["PORT"] ?? 0);
const storage = await PostgresStorage.open(databaseUrl);
const pool = new Pool({
  connectionString: databaseUrl,
  max: CONNECTIONS,
  options: "-c search_path=customers",
});
const policy = readPolicyText(BUILT_IN_POLICY);
if (!policy.ok) throw new Error(policy.faults.join());
const metrics = new Metrics({
  hasCallerLabels: true,
  version: packageJson.version,
  storageStats: () => storage.stats(),
  tokensToRenew: { expiring: () => [], stillUsed: () => [] },
  issuerKeys: () => [],
  auditRetention: () => null,
  certificateExpiry: () => Number.NaN,
  rollout: { counts: async function* () {}, enforcement: () => ({ mode: "strict" }), now: Date.now },
  onWrite: () => {},
});
const parts = {
  store: oneStatementEach(storage.customers, pool),
  audit: storage.audit,
  tokens: knownForGood(storage.tokens),
  signIn: new SignIn({ policy: () => policy.policy, onFetch: () => {}, onRefused: () => {} }),
  requireReady: () => storage.ping(),
  policy: () => policy.policy,
  metrics,
  limits: new CallerLimits(metrics.limits),
  metricsArePublic: false,
  cors: new Cors([], []),
  publicUrl: "",
  trustedProxies: null,
  log: openLog("info", "json"),
  now: Date.now,
  isStopping: () => false,
  closesConnections: () => false,
};
const listener = new Listener({
  address: { host: "127.0.0.1", port, portVariable: "PORT", isShared: process.env["REUSE_PORT"] === "1" },
  tls: null,
  idleTimeoutSeconds: 60,
  createApp: () => createApp(parts),
});
console.log(JSON.stringify({ url: listener.url }));
process.once("SIGTERM", async () => {
  await listener.stop(0);
  await pool.end();
  await storage.close();
  process.exit(0);
});
