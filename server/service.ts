import { createApp } from "./app.ts";
import type { Config } from "./config/config.ts";
import { readPolicyFile } from "./config/policy-file.ts";
import { hasSamples, variableOf } from "./config/settings.ts";
import { certificateExpiry, readTlsFiles, type TlsFiles } from "./config/tls-files.ts";
import { firstDayKept } from "./domain/rollout/write-count.ts";
import { maskPassword } from "./domain/text/mask-password.ts";
import { Cors } from "./http/cors.ts";
import { CallerLimits } from "./http/limits/caller-limits.ts";
import { Readiness } from "./http/routes/readiness.ts";
import type { Audience } from "./http/routes/routes.ts";
import type { KeyFetch } from "./issuers/issuer-keys.ts";
import { SignIn } from "./issuers/sign-in.ts";
import { type Address, Listener, refuseTakenPort } from "./listener.ts";
import { AuditRetention } from "./storage/audit/audit-retention.ts";
import { SealingTimer } from "./storage/audit/sealing-timer.ts";
import { KeyPurge } from "./storage/customers/key-purge.ts";
import { databaseExists, isInMemory, openStorage } from "./storage/database-url/open-storage.ts";
import type { FirstStart, Storage } from "./storage/storage.ts";
import { countPages } from "./storage/write-counts/write-count-store.ts";
import { DescriptorWatch } from "./telemetry/file-descriptors.ts";
import { type Log, openLog } from "./telemetry/log/log.ts";
import { RefusedTokenLog } from "./telemetry/log/refused-token-log.ts";
import { Metrics } from "./telemetry/metrics/metrics.ts";
import { WriteCounter } from "./telemetry/metrics/write-counter.ts";
import { VERSION } from "./version.ts";

export type RunningService = {
  readonly url: string;
  /** Of the second listener, for metrics and health; null without ADMIN_PORT. */
  readonly adminUrl: string | null;
  /** What the first start made; null on every later one. */
  readonly first: FirstStart | null;
  /** Reads policy and TLS files again. A bad file is logged, and what was read before stays in force. */
  readonly reload: () => void;
  /** Logs a sentence as an error. */
  readonly logFault: (sentence: string) => void;
  readonly logWarning: (sentence: string) => void;
  /** Accepts no more requests, finishes those in flight, commits and closes. */
  readonly stop: () => Promise<void>;
  /** Ends STOP_GRACE of a stop now. */
  readonly endGrace: () => void;
};

/**
 * Opens the store, listens, and answers.
 *
 * @throws CommandRefused
 */
export async function startService(config: Config): Promise<RunningService> {
  const { host, port, adminPort, reusePort } = config;
  const main: Address = { host, port, portVariable: variableOf("port"), isShared: reusePort };
  const admin = { ...main, portVariable: variableOf("adminPort"), isShared: false };
  const addresses: readonly [Address, Audience][] =
    adminPort === null
      ? [[main, "everything"]]
      : [
          [main, "customers"],
          [{ ...admin, port: adminPort }, "admin"],
        ];
  const reach = { caFile: config.databaseCa, lockWaitMs: config.lockWait * 1000 };
  for (const [address] of addresses) {
    // Before the database is opened, so that a start that is refused leaves nothing behind. Where it exists, services
    // may answer on a shared port, and the probe would take their connections; a new database has none. A database in
    // memory never exists and leaves nothing behind.
    const isProbed =
      !address.isShared ||
      !(isInMemory(config.databaseUrl) || (await databaseExists(config.databaseUrl, reach)));
    if (isProbed) refuseTakenPort(address);
  }

  let { policy } = config.policyFile;
  let tlsInForce = config.tls;
  let isStopping = false;
  const log = openLog(config.logLevel, config.logFormat);
  const { logger } = log;
  const areMetricsPublic = config.metricsAccess === "public";
  const metrics = new Metrics({
    hasCallerLabels: !areMetricsPublic,
    version: VERSION,
    storageStats: () => storage.stats(),
    tokensToRenew: {
      expiring: () => storage.tokens.expiring(Date.now()),
      stillUsed: () => storage.tokens.stillUsed(Date.now()),
    },
    issuerKeys: () => signIn.fetchTimes(),
    auditRetention: () => retention,
    certificateExpiry: () => certificateExpiry(tlsInForce),
    rollout: {
      counts: () => countPages(storage.writeCounts, firstDayKept(Date.now())),
      enforcement: () => policy.enforcement,
      now: Date.now,
    },
    onWrite: (write, kind) => writeCounter.record(write, kind),
  });
  const storage = await openStorage(config.databaseUrl, {
    ...reach,
    hasWriterThread: true,
    memoryMib: config.databaseMemoryMib,
    deletesAuditRows: config.auditRetentionDays !== null,
    requiresSynchronousStandby: config.databaseStandby === "synchronous",
    onCommit: (commit) => metrics.storage.onCommit(commit),
    onServerEvent: (event) => {
      metrics.storage.onServerEvent(event);
      if (event.kind === "connected" && event.reason !== null)
        logger.warn({ reason: event.reason }, "connection to the database opened again");
    },
    onFault: (sentence) => logger.error(sentence),
  });
  const writeCounter = new WriteCounter(storage.writeCounts, {
    onFailure: (error) => logger.warn({ err: error }, "counts of writes could not be stored; they are kept"),
  });
  const refusedTokens = new RefusedTokenLog(log);
  const signIn = new SignIn({
    policy: () => policy,
    onFetch: (fetched) => {
      metrics.issuers.onFetch(fetched);
      logKeyFetch(fetched, log);
    },
    onRefused: (refused) => {
      metrics.issuers.onRefused(refused);
      refusedTokens.record(refused);
    },
  });
  const listeners: Listener[] = [];
  const descriptors = new DescriptorWatch(logger, () => {
    for (const listener of listeners) listener.closeIdle();
  });
  const readiness = new Readiness(() => storage.ping());
  const parts = {
    store: storage.customers,
    audit: storage.audit,
    tokens: storage.tokens,
    signIn,
    requireReady: () => readiness.check(),
    policy: () => policy,
    metrics,
    limits: new CallerLimits(metrics.limits),
    metricsArePublic: areMetricsPublic,
    cors: new Cors(config.corsOrigins, config.corsHeaders),
    publicUrl: config.publicUrl,
    trustedProxies: config.trustedProxies,
    log,
    now: Date.now,
    isStopping: () => isStopping,
    closesConnections: () => isStopping || descriptors.areScarce,
  };
  const { tls, idleTimeout: idleTimeoutSeconds } = config;
  const onFault = (sentence: string): void => logger.error(sentence);
  let first: FirstStart | null;
  try {
    first = await storage.firstStart(hasSamples(config), Date.now());
    for (const [address, audience] of addresses) {
      const own = { address, createApp: () => createApp(parts, audience) };
      listeners.push(new Listener({ ...own, tls, idleTimeoutSeconds, onFault }));
    }
  } catch (error) {
    for (const listener of listeners) await listener.stop(0);
    await writeCounter.stop();
    await storage.close();
    throw error;
  }
  // The service listens meanwhile: its own tokens need no issuer.
  void signIn.refresh();
  const keyPurge = new KeyPurge(storage.customers, (error) =>
    logger.warn({ err: error }, "expired idempotency keys could not be deleted"),
  );
  const sealing = storage.audit.isSealedLater
    ? new SealingTimer(storage.audit, (error) =>
        logger.warn({ err: error }, "rows of the audit trail could not be sealed; they are kept"),
      )
    : null;
  const retention = startRetention(storage, config, log);
  const [{ url = "" } = {}, { url: adminUrl = null } = {}] = listeners;
  logger.info(
    {
      version: VERSION,
      url,
      ...(adminUrl === null ? {} : { adminUrl }),
      database: maskPassword(config.databaseUrl),
      policy: config.policyFile.path ?? "built-in",
    },
    "listening",
  );

  const grace = Promise.withResolvers<void>();
  return {
    url,
    adminUrl,
    first,
    logFault: onFault,
    logWarning: (sentence) => logger.warn(sentence),
    endGrace: () => grace.resolve(),
    reload: () => {
      policy = reloadPolicy(config, log) ?? policy;
      void signIn.refresh();
      tlsInForce = reloadTls(config, log, listeners) ?? tlsInForce;
    },
    stop: async () => {
      isStopping = true;
      logger.info("stopping");
      // Clients and load balancers learn from replies and from /readyz that they must go elsewhere.
      await Promise.race([Bun.sleep(config.stopGrace * 1000), grace.promise]);
      const [main, admin] = listeners;
      const isDrained = await main?.stop(config.stopDrain * 1000);
      if (isDrained === false)
        logger.warn("requests that were still in flight after STOP_DRAIN were cut off");
      await admin?.stop(0);
      keyPurge.stop();
      signIn.stop();
      await writeCounter.stop();
      await retention?.stop();
      await sealing?.stop();
      await storage.close();
      logger.info("stopped");
      await log.close();
    },
  };
}

/** @returns null where the audit trail is kept forever */
function startRetention(
  { audit }: Storage,
  { auditRetentionDays }: Config,
  { logger }: Log,
): AuditRetention | null {
  if (auditRetentionDays === null) return null;
  return new AuditRetention(audit, auditRetentionDays, {
    now: Date.now,
    onDeleted: (rows) => logger.info({ rows }, "rows of the audit trail past AUDIT_RETENTION_DAYS deleted"),
    onFault: (tenant, fault) =>
      logger.error(
        { tenant, fault },
        "the audit trail is not in order, so its old rows are kept; run `customers-server audit verify`",
      ),
    onFailure: (error) =>
      logger.warn({ err: error }, "old rows of the audit trail could not be deleted; they are kept"),
  });
}

function logKeyFetch({ issuer, fault, hasKeys }: KeyFetch, { logger }: Log): void {
  const facts = { issuer, ...(fault === null ? {} : { fault }) };
  if (fault === null) logger.debug(facts, "keys of the issuer fetched");
  else if (hasKeys) logger.warn(facts, "keys of the issuer not fetched; those fetched before stay in force");
  else logger.error(facts, "keys of the issuer not fetched; its tokens are refused with 503 until they are");
}

/** @returns null where the policy in force stays */
function reloadPolicy(
  { policyFile: { path } }: Config,
  { logger }: Log,
): Config["policyFile"]["policy"] | null {
  if (path === null) {
    logger.info("no POLICY_FILE is set; the built-in policy stays in force");
    return null;
  }
  const result = readPolicyFile(path);
  if (result.ok) logger.info({ file: path }, "policy file reloaded");
  else logger.error({ file: path, faults: result.faults }, "policy file refused; the policy in force stays");
  return result.ok ? result.policy : null;
}

/** @returns null where the certificate in force stays */
function reloadTls(
  { tls, tlsCertFile, tlsKeyFile }: Config,
  { logger }: Log,
  listeners: readonly Listener[],
): TlsFiles | null {
  if (tls === null) return null;
  const result = readTlsFiles(tlsCertFile, tlsKeyFile);
  if (!result.ok || result.files === null) {
    const faults = result.ok ? [] : result.faults.map(({ name, what }) => `${variableOf(name)}: ${what}`);
    logger.error({ faults }, "TLS files refused; the certificate in force stays");
    return null;
  }
  for (const listener of listeners) listener.replaceTls(result.files);
  logger.info({ file: tlsCertFile }, "TLS files reloaded");
  return result.files;
}
