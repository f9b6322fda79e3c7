import { Gauge, Histogram, type Registry } from "prom-client";
import type { Commit, StorageStats } from "../storage/storage.ts";

const COMMIT_SECONDS = [0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5];
const BATCH_WRITES = [1, 2, 4, 8, 16, 32, 64, 128, 256];

/** How the database keeps up: what waits, how long commits take, where they run, and what it occupies. */
export class StorageMetrics {
  readonly #durations: Histogram;
  readonly #writes: Histogram;

  /** @param stats asked at each scrape */
  constructor(registry: Registry, stats: () => StorageStats) {
    const registers = [registry];
    this.#durations = new Histogram({
      name: "customers_commit_duration_seconds",
      help: "Time of a commit with its writes, by where it ran: inline (the thread of requests) or thread.",
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
    const gauge = (name: string, help: string, read: (now: StorageStats) => number): void => {
      new Gauge({
        name,
        help,
        registers,
        collect() {
          this.set(read(stats()));
        },
      });
    };
    gauge(
      "customers_writes_waiting",
      "Writes whose commit has not ended.",
      ({ writesWaiting }) => writesWaiting,
    );
    gauge("customers_database_bytes", "Size of the database.", ({ databaseBytes }) => databaseBytes);
    gauge("customers_database_log_bytes", "Size of its write-ahead log.", ({ logBytes }) => logBytes);
  }

  onCommit({ writes, ms, where }: Commit): void {
    this.#durations.observe({ where }, ms / 1000);
    this.#writes.observe(writes);
  }
}
