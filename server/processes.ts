import type { Config } from "./config/config.ts";
import { firstStart } from "./first-start.ts";
import { DRAIN_MS, type RunningService, refuseTakenPort, StartRefused, urlOf } from "./service.ts";
import { SqliteConnections } from "./storage/sqlite/connections.ts";
import { openDatabase } from "./storage/sqlite/sqlite-database.ts";
import { openLog } from "./telemetry/log.ts";
import { type MetricsSnapshot, PooledMetrics } from "./telemetry/pooled-metrics.ts";

/** What a process tells the one that started it. */
export type FromProcess =
  | { readonly kind: "listening"; readonly port: number }
  /** Sent every second, and when it is asked for. */
  | { readonly kind: "metrics"; readonly snapshot: MetricsSnapshot }
  /** Somebody scrapes it: it needs the sum of all. */
  | { readonly kind: "scraped"; readonly scrape: number };

export type ToProcess =
  | { readonly kind: "tell-metrics" }
  | { readonly kind: "sum"; readonly scrape: number; readonly text: string };

type Child = ReturnType<typeof Bun.spawn>;

/** How long a scrape waits for a process that does not tell its metrics; then its last ones count. */
const TELL_MS = 500;
/** A process that dies again and again is started again ever more slowly, up to this. */
const RESTART_MS_MAX = 5_000;
/** A process that lived this long did not die of its start. */
const SETTLED_MS = 10_000;
/** Past the time to drain a process is not waited for. */
const KILL_AFTER_MS = DRAIN_MS + 2_000;

/**
 * Several processes on one port (SO_REUSEPORT) and one database: for machines with more cores than one process can
 * use. This one serves no request: it starts the others, replaces one that dies, and sums their metrics.
 *
 * @throws StartRefused, DatabaseRefused
 */
export async function startProcesses(config: Config, hasSamples: boolean): Promise<RunningService> {
  refuseTakenPort(config);
  // Once, before any of them: they would all find the database empty.
  const first = await prepare(config, hasSamples);
  const log = openLog(config.logLevel, config.logFormat);
  const pool = new ProcessPool(config, (event, detail) => log.logger.error(detail, event));
  const port = await pool.startAll();
  const url = urlOf(config, port);
  log.logger.info({ url, processes: config.processes }, "processes listening");
  return {
    url,
    first,
    reloadPolicy: () => pool.signalAll("SIGHUP"),
    stop: async () => {
      await pool.stop();
      foldIn(config.databasePath);
      await log.close();
    },
  };
}

async function prepare(config: Config, hasSamples: boolean): Promise<RunningService["first"]> {
  const connections = SqliteConnections.open(config.databasePath);
  try {
    return await firstStart(connections, config.databasePath, hasSamples, Date.now());
  } finally {
    await connections.close();
  }
}

/**
 * Processes that end in the same moment each take the other for one that still needs the write-ahead log, and leave it.
 * Nothing is lost by that; but a stopped service should be one file, which can be copied.
 */
function foldIn(databasePath: string): void {
  try {
    openDatabase(databasePath).close();
  } catch {
    // Moved or damaged: the next start says so.
  }
}

class ProcessPool {
  readonly #config: Config;
  readonly #onFault: (event: string, detail: object) => void;
  readonly #metrics = new PooledMetrics();
  readonly #living = new Map<number, Child>();
  readonly #told = new Map<number, () => void>();
  #port: number;
  #isStopping = false;

  constructor(config: Config, onFault: (event: string, detail: object) => void) {
    this.#config = config;
    this.#onFault = onFault;
    this.#port = config.port;
  }

  /** The first one takes the port, the others share it. @returns the port */
  async startAll(): Promise<number> {
    try {
      this.#port = await this.#start(0);
      await Promise.all(Array.from({ length: this.#config.processes - 1 }, () => this.#start(0)));
    } catch (error) {
      await this.stop();
      throw error;
    }
    return this.#port;
  }

  signalAll(signal: NodeJS.Signals): void {
    for (const child of this.#living.values()) child.kill(signal);
  }

  async stop(): Promise<void> {
    this.#isStopping = true;
    const children = [...this.#living.values()];
    this.signalAll("SIGTERM");
    const kill = setTimeout(() => this.signalAll("SIGKILL"), KILL_AFTER_MS);
    await Promise.all(children.map((child) => child.exited));
    clearTimeout(kill);
  }

  /** @param deaths how many before it died of their start @returns the port that it listens on */
  #start(deaths: number): Promise<number> {
    const startedAt = performance.now();
    return new Promise((resolve, reject) => {
      const child = Bun.spawn([process.execPath, ...programArguments(), "serve", "--child"], {
        env: { ...process.env, ...this.#config.texts, PORT: String(this.#port) },
        stdio: ["ignore", "ignore", "inherit"],
        serialization: "json",
        ipc: (message: FromProcess) => {
          if (message.kind === "listening") resolve(message.port);
          else if (message.kind === "scraped") this.#answerScrape(child, message.scrape);
          else {
            this.#metrics.update(child.pid, message.snapshot);
            this.#told.get(child.pid)?.();
          }
        },
        onExit: async (_, code, signal) => {
          this.#living.delete(child.pid);
          this.#told.get(child.pid)?.();
          await this.#metrics.bury(child.pid);
          // Before it listened: a start that failed; afterwards it has no effect.
          reject(new StartRefused("A process could not start; its reason is above."));
          if (this.#isStopping) return;
          const isSettled = performance.now() - startedAt > SETTLED_MS;
          this.#replace(child.pid, code ?? signal, isSettled ? 0 : deaths);
        },
      });
      this.#living.set(child.pid, child);
    });
  }

  #replace(pid: number, how: number | string | null, deaths: number): void {
    this.#onFault("a process died and is replaced", { pid, how });
    const delayMs = Math.min(RESTART_MS_MAX, deaths === 0 ? 0 : 100 * 2 ** deaths);
    setTimeout(() => {
      // One that can't start is replaced in its turn, later each time.
      if (!this.#isStopping) this.#start(deaths + 1).catch(() => {});
    }, delayMs);
  }

  async #answerScrape(scraped: Child, scrape: number): Promise<void> {
    await Promise.all([...this.#living.values()].map((child) => this.#tell(child)));
    const text = await this.#metrics.text();
    if (this.#living.has(scraped.pid)) scraped.send({ kind: "sum", scrape, text } satisfies ToProcess);
  }

  /** Waits until the process has told its metrics, died, or let the time pass. */
  #tell(child: Child): Promise<void> {
    return new Promise((resolve) => {
      const done = (): void => {
        clearTimeout(timer);
        resolve();
      };
      const timer = setTimeout(done, TELL_MS);
      const earlier = this.#told.get(child.pid);
      this.#told.set(child.pid, () => {
        earlier?.();
        done();
        this.#told.delete(child.pid);
      });
      child.send({ kind: "tell-metrics" } satisfies ToProcess);
    });
  }
}

/** How this program is run again: the file for bun, nothing for a compiled one. */
function programArguments(): string[] {
  return Bun.main.startsWith("/$bunfs/") ? [] : [Bun.main];
}
