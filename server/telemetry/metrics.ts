import { Registry } from "prom-client";
import type { Commit, ServerEvent, StorageStats } from "../storage/storage.ts";
import type { AnsweredRequest } from "./answered-request.ts";
import { registerProcessMetrics } from "./process-metrics.ts";
import { RequestMetrics } from "./request-metrics.ts";
import { StorageMetrics } from "./storage-metrics.ts";
import { WriteMetrics } from "./write-metrics.ts";

type MetricsOptions = {
  /** False where anyone may read the metrics: then they name no client and no tenant. */
  readonly hasCallerLabels: boolean;
  /** Of the service. */
  readonly version: string;
  readonly storageStats: () => StorageStats;
  /** Of the chain in force, in seconds since 1970; NaN without TLS. */
  readonly certificateExpiry: () => number;
};

/**
 * What is counted (Prometheus text format). One event moves one series, and there is never a total beside its
 * parts: a sum would count double.
 */
export class Metrics {
  readonly #registry = new Registry();
  readonly #writes: WriteMetrics;
  readonly #requests: RequestMetrics;
  readonly #storage: StorageMetrics;

  constructor({ hasCallerLabels, version, storageStats, certificateExpiry }: MetricsOptions) {
    this.#writes = new WriteMetrics(this.#registry, hasCallerLabels);
    this.#requests = new RequestMetrics(this.#registry);
    this.#storage = new StorageMetrics(this.#registry, storageStats);
    registerProcessMetrics(this.#registry, version, certificateExpiry);
  }

  /** @param headers of the request */
  record(answered: AnsweredRequest, headers: Headers): void {
    this.#requests.record(answered);
    this.#writes.record(answered, headers);
  }

  recordServerEvent(event: ServerEvent): void {
    this.#storage.onServerEvent(event);
  }

  recordCommit(commit: Commit): void {
    this.#storage.onCommit(commit);
  }

  /** The exposition, in Prometheus' text format 0.0.4. */
  text(): Promise<string> {
    return this.#registry.metrics();
  }

  get contentType(): string {
    return this.#registry.contentType;
  }
}
