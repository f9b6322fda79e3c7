import { createApp } from "./app.ts";
import type { Config } from "./config/config.ts";
import { readPolicyFile } from "./config/policy-file.ts";
import { Cors } from "./http/cors.ts";
import { type FirstStart, maskDatabaseUrl, openStorage } from "./storage/storage.ts";
import { openLog } from "./telemetry/log.ts";
import { Metrics } from "./telemetry/metrics.ts";

/** How long requests in flight may take to finish once the service is told to stop. */
const DRAIN_MS = 10_000;
/** For so long every answer says that it is its connection's last, before connections are closed. */
const FAREWELL_MS = 250;

/** A start that can't be. The message says why and what to do. */
export class StartRefused extends Error {
  override readonly name = "StartRefused";
}

export type RunningService = {
  readonly url: string;
  /** What the first start made; null on every later one. */
  readonly first: FirstStart | null;
  /** Reads the policy file again. A bad one is logged, and the policy stays. */
  readonly reloadPolicy: () => void;
  /** Takes no more requests, finishes those in flight, commits and closes. */
  readonly stop: () => Promise<void>;
};

/**
 * Opens the store, listens, and answers.
 *
 * @throws StartRefused, DatabaseRefused
 */
export async function startService(config: Config, hasSamples: boolean): Promise<RunningService> {
  // Before the database is opened: a refused start leaves nothing behind. A port that is shared is not probed,
  // since the probe would take connections from the services that listen there.
  if (!config.sharesPort) refuseTakenPort(config);
  let { policy } = config;
  let isStopping = false;
  const { tls } = config;
  const log = openLog(config.logLevel, config.logFormat);
  const { logger } = log;
  const storage = await openStorage(config.databaseUrl, {
    onFault: (reason) => logger.error({ reason }, "the writer's thread died; the next write starts another"),
  });
  const now = Date.now;
  const first = await storage.firstStart(hasSamples, now());
  const metrics = new Metrics(!config.metricsArePublic);
  const app = createApp({
    store: storage.customers,
    tokens: storage.tokens,
    ping: () => storage.ping(),
    policy: () => policy,
    metrics,
    metricsArePublic: config.metricsArePublic,
    cors: new Cors(config.corsOrigins),
    publicUrl: config.publicUrl,
    log,
    now,
    isStopping: () => isStopping,
  });
  try {
    app.listen({
      hostname: config.host,
      port: config.port,
      reusePort: config.sharesPort,
      ...(tls === null ? {} : { tls }),
    });
  } catch (error) {
    await storage.close();
    throw cantListen(config, error);
  }
  const port = app.server?.port ?? config.port;
  const url = urlOf(config, port);
  logger.info(
    { url, database: maskDatabaseUrl(config.databaseUrl), policy: config.policyFile ?? "built-in" },
    "listening",
  );

  return {
    url,
    first,
    reloadPolicy: () => {
      const result = readPolicyFile(config.policyFile);
      if (result.ok) policy = result.policy;
      if (result.ok) logger.info("policy read again");
      else logger.error({ faults: result.faults }, "policy refused; the one in force stays");
    },
    stop: async () => {
      logger.info("stopping");
      isStopping = true;
      await Bun.sleep(FAREWELL_MS);
      const drained = app.stop().then(() => true);
      const isDrained = await Promise.race([drained, Bun.sleep(DRAIN_MS).then(() => false)]);
      if (!isDrained) {
        logger.warn("requests still in flight after the time to drain were cut off");
        await app.stop(true);
      }
      await storage.close();
      logger.info("stopped");
      await log.close();
    },
  };
}

function refuseTakenPort(config: Config): void {
  try {
    Bun.listen({ hostname: config.host, port: config.port, socket: { data: () => {} } }).stop(true);
  } catch (error) {
    throw cantListen(config, error);
  }
}

function cantListen({ host, port }: Config, error: unknown): StartRefused {
  const { code, message } = error as NodeJS.ErrnoException;
  const reasons: Readonly<Record<string, string>> = {
    EADDRINUSE: `Port ${port} on ${host} is already in use. Choose another with PORT=… (0 picks a free one).`,
    EADDRNOTAVAIL: `${host} is not an address of this machine. Set HOST to one that is, such as 127.0.0.1 or 0.0.0.0.`,
    EACCES: `This user may not listen on port ${port}. Choose one from 1024 on with PORT=….`,
  };
  return new StartRefused(reasons[code ?? ""] ?? `${host}:${port} cannot be listened on: ${message}.`);
}

function urlOf({ host, tls }: Config, port: number): string {
  return `${tls === null ? "http" : "https"}://${hostInUrl(host)}:${port}`;
}

function hostInUrl(host: string): string {
  if (host === "0.0.0.0") return "127.0.0.1";
  if (host === "::") return "[::1]";
  return host.includes(":") ? `[${host}]` : host;
}
