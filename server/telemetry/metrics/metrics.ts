import Registry from "prom-client/lib/registry.js";
import type { Enforcement } from "../../domain/policy/policy.ts";
import type { WriteKind } from "../../domain/rollout/write-count.ts";
import type { RetentionProgress } from "../../storage/audit/audit-retention.ts";
import type { StorageStats } from "../../storage/storage.ts";
import type { AnsweredRequest } from "../answered-request.ts";
import { type AnsweredWrite, answeredWriteOf, writeKindOf } from "../answered-write.ts";
import { registerAuditMetrics } from "./audit-metrics.ts";
import { IssuerMetrics, type IssuerMetricsParts } from "./issuer-metrics.ts";
import { LimitMetrics } from "./limit-metrics.ts";
import { registerProcessMetrics } from "./process-metrics.ts";
import { RequestMetrics } from "./request-metrics.ts";
import { type RolloutParts, registerRolloutMetrics } from "./rollout-metrics.ts";
import { StorageMetrics } from "./storage-metrics.ts";
import { registerTokenMetrics, type TokensToRenew } from "./token-metrics.ts";
import { WriteMetrics } from "./write-metrics.ts";

type MetricsOptions = {
  /** False where anyone may read the metrics: then they name no client and no tenant. */
  readonly hasCallerLabels: boolean;
  /** Of the service. */
  readonly version: string;
  readonly storageStats: () => StorageStats;
  readonly tokensToRenew: TokensToRenew;
  readonly issuerKeys: IssuerMetricsParts;
  /** Null where the rows of the audit trail are kept forever. */
  readonly auditRetention: () => RetentionProgress | null;
  /** Of the chain in force, in seconds since 1970; NaN without TLS. */
  readonly certificateExpiry: () => number;
  readonly rollout: RolloutParts;
  /** Counts writes in the database, for the rollout report. */
  readonly onWrite: (write: AnsweredWrite, kind: WriteKind) => void;
};

/**
 * What is counted (Prometheus text format). One event moves one series, and there is never a total beside its
 * parts: a sum would count double.
 */
export class Metrics {
  readonly limits: LimitMetrics;
  readonly storage: StorageMetrics;
  readonly issuers: IssuerMetrics;
  readonly #registry = new Registry();
  readonly #writes: WriteMetrics;
  readonly #requests: RequestMetrics;
  readonly #enforcement: () => Enforcement;
  readonly #onWrite: MetricsOptions["onWrite"];

  constructor(options: MetricsOptions) {
    const { hasCallerLabels, rollout } = options;
    this.#writes = new WriteMetrics(this.#registry, hasCallerLabels);
    registerRolloutMetrics(this.#registry, hasCallerLabels, rollout);
    this.#requests = new RequestMetrics(this.#registry);
    this.storage = new StorageMetrics(this.#registry, options.storageStats);
    this.limits = new LimitMetrics(this.#registry, hasCallerLabels);
    registerTokenMetrics(this.#registry, hasCallerLabels, options.tokensToRenew);
    this.issuers = new IssuerMetrics(this.#registry, options.issuerKeys);
    registerAuditMetrics(this.#registry, options.auditRetention);
    registerProcessMetrics(this.#registry, options.version, options.certificateExpiry);
    this.#enforcement = rollout.enforcement;
    this.#onWrite = options.onWrite;
  }

  /** @param headers of the request */
  record(answered: AnsweredRequest, headers: Headers): void {
    this.#requests.record(answered);
    const write = answeredWriteOf(answered, headers);
    if (write === null) return;
    this.#writes.record(write);
    const kind = writeKindOf(answered, headers);
    // Without a rollout every write that is applied has If-Match: only those that are refused tell anything.
    const isTelling = kind === "refused" || this.#enforcement().mode === "observe";
    if (kind !== null && isTelling) this.#onWrite(write, kind);
  }

  /** The exposition, in Prometheus' text format 0.0.4. */
  text(): Promise<string> {
    return this.#registry.metrics();
  }

  get contentType(): string {
    return this.#registry.contentType;
  }
}
