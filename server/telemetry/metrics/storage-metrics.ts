import type { Registry } from "prom-client";
import Counter from "prom-client/lib/counter.js";
import Histogram from "prom-client/lib/histogram.js";
import {
  type Commit,
  type ConnectionStats,
  RETRY_REASONS,
  type ServerEvent,
  type StorageStats,
} from "../../storage/storage.ts";
import { scrapedGauge } from "./scraped-metric.ts";

const COMMIT_SECONDS = [0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5];
const BATCH_WRITES = [1, 2, 4, 8, 16, 32, 64, 128, 256];

/** How the database keeps up: what waits, how long commits take, where they run, and what it occupies. */
export class StorageMetrics {
  readonly #durations: Histogram;
  readonly #writes: Histogram;
  readonly #reads: Histogram;
  readonly #lookUps: Histogram;
  readonly #connections: Counter;
  readonly #retries: Counter;
  readonly #deadlines: Counter;

  /** @param stats asked at each scrape */
  constructor(registry: Registry, stats: () => StorageStats) {
    const registers = [registry];
    this.#durations = new Histogram({
      name: "customers_commit_duration_seconds",
      help: "Time of a commit with its writes, by where it ran: inline (the thread of requests), thread or server.",
      labelNames: ["where"],
      buckets: COMMIT_SECONDS,
      registers,
    });
    this.#writes = new Histogram({
      name: "customers_commit_writes",
      help: "Writes in one commit.",
      buckets: BATCH_WRITES,
      registers,
    });
    this.#reads = new Histogram({
      name: "customers_read_duration_seconds",
      help: "Time of a statement that reads, where the database is a server.",
      buckets: COMMIT_SECONDS,
      registers,
    });
    this.#lookUps = new Histogram({
      name: "customers_read_lookups",
      help: "Look-ups of customers or tokens in one statement, where the database is a server.",
      buckets: BATCH_WRITES,
      registers,
    });
    const counter = (name: string, help: string, labelNames: string[] = []): Counter =>
      new Counter({ name, help, labelNames, registers });
    this.#connections = counter(
      "customers_database_connections_total",
      "Connections to a database server that were opened: 7 at the start, then in place of lost ones.",
    );
    this.#deadlines = counter(
      "customers_database_deadlines_total",
      "Statements that a database server did not answer in time; their connections were given up.",
    );
    this.#retries = counter(
      "customers_database_retries_total",
      "Statements that were sent again, by reason: never-sent, rolled-back or unknown.",
      ["reason"],
    );
    // rate() misses a series' first event.
    for (const reason of RETRY_REASONS) this.#retries.inc({ reason }, 0);
    const gauge = (name: string, help: string, read: (now: StorageStats) => number): void =>
      scrapedGauge(registry, { name, help }, () => read(stats()));
    const byPurpose = (name: string, help: string, read: (now: ConnectionStats) => number): void =>
      scrapedGauge(registry, { name, help, labelNames: ["purpose"] }, () =>
        stats().connections.map((now) => [read(now), { purpose: now.purpose }]),
      );
    byPurpose(
      "customers_database_connections_busy",
      "Connections to a database server that run a statement, by purpose: read, write, slow or page.",
      ({ busy }) => busy,
    );
    byPurpose(
      "customers_database_statements_waiting",
      "Statements that wait for such a connection.",
      ({ waiting }) => waiting,
    );
    gauge(
      "customers_writes_waiting",
      "Writes whose commit has not ended.",
      ({ writesWaiting }) => writesWaiting,
    );
    gauge("customers_database_bytes", "Size of the database.", ({ databaseBytes }) => databaseBytes);
    gauge("customers_database_log_bytes", "Size of its write-ahead log.", ({ logBytes }) => logBytes);
    gauge(
      "customers_database_free_bytes",
      "Free bytes of its file system; NaN where the database is a server.",
      ({ freeBytes }) => freeBytes,
    );
  }

  onCommit({ writes, ms, where }: Commit): void {
    this.#durations.observe({ where }, ms / 1000);
    this.#writes.observe(writes);
  }

  onServerEvent(event: ServerEvent): void {
    if (event.kind === "connected") this.#connections.inc();
    else if (event.kind === "deadline") this.#deadlines.inc();
    else if (event.kind === "retry") this.#retries.inc({ reason: event.reason });
    else {
      this.#reads.observe(event.ms / 1000);
      this.#lookUps.observe(event.lookUps);
    }
  }
}
