import { Counter, type Registry } from "prom-client";
import { WRITE_METHODS } from "../domain/policy.ts";
import { type AnsweredWrite, CUSTOMER_ROUTE } from "./answered-write.ts";
import { ClientVersions } from "./client-versions.ts";

/** Holds the counts of versions that gave up their place. Nothing is counted here first. */
const OTHER_VERSIONS = "other";

const COUNTERS = {
  required: {
    name: "http_precondition_required_total",
    help: "Writes refused with 428: If-Match absent or blank.",
  },
  failed: {
    name: "http_precondition_failed_total",
    help: "Writes refused with 412: If-Match was not the current entity-tag.",
  },
  attempts: {
    name: "http_write_attempts_total",
    help: "PUT, PATCH and DELETE of authenticated callers, whatever their outcome.",
  },
  missingAllowed: {
    name: "http_precondition_missing_allowed_total",
    help: "Writes without If-Match that were applied because the rollout still allows them.",
  },
} as const;

type Counts = Record<keyof typeof COUNTERS, number>;

/**
 * The counts of one caller's writes by one method. All four
 * begin at 0 together: rate() misses a series' first event.
 */
type WriteSeries = {
  readonly method: string;
  readonly client: string;
  readonly version: string;
  readonly tenant: string;
  readonly counts: Counts;
};

/** What came of writes to `/customers/{id}`, by method and caller. One event moves one series. */
export class WriteMetrics {
  readonly #hasCallerLabels: boolean;
  readonly #versions = new ClientVersions();
  readonly #series = new Map<string, WriteSeries>();

  /**
   * @param hasCallerLabels false where anyone may read the metrics: then they name no client and no tenant
   */
  constructor(registry: Registry, hasCallerLabels: boolean) {
    this.#hasCallerLabels = hasCallerLabels;
    const labelNames = [
      "method",
      "route",
      ...(hasCallerLabels ? ["client", "client_version", "tenant"] : []),
    ];
    for (const [key, { name, help }] of Object.entries(COUNTERS)) {
      const countInto = (counter: Counter): void => this.#countInto(counter, key as keyof Counts);
      new Counter({
        name,
        help,
        labelNames,
        registers: [registry],
        collect() {
          countInto(this);
        },
      });
    }
    for (const method of WRITE_METHODS) this.#seriesOf(method, "", "", "");
  }

  record({ answered, method, client, tenant, version }: AnsweredWrite): void {
    const { status, isAllowedWithoutIfMatch } = answered;
    const { counts } = this.#hasCallerLabels
      ? this.#seriesOfCaller(method, client, version, tenant)
      : this.#seriesOf(method, "", "", "");
    counts.attempts += 1;
    if (status === 428) counts.required += 1;
    if (status === 412) counts.failed += 1;
    if (isAllowedWithoutIfMatch) counts.missingAllowed += 1;
  }

  #seriesOfCaller(method: string, client: string, version: string, tenant: string): WriteSeries {
    const oldest = version === "" ? null : this.#versions.note(client, version);
    if (oldest !== null) this.#retire(client, oldest);
    return this.#seriesOf(method, client, version, tenant);
  }

  /** Moves the counts of a version to `other`, so that no sum over a client's versions falls. */
  #retire(client: string, version: string): void {
    for (const [key, series] of this.#series) {
      if (series.client !== client || series.version !== version) continue;
      const other = this.#seriesOf(series.method, client, OTHER_VERSIONS, series.tenant);
      for (const name of Object.keys(COUNTERS) as (keyof Counts)[]) other.counts[name] += series.counts[name];
      this.#series.delete(key);
    }
  }

  #seriesOf(method: string, client: string, version: string, tenant: string): WriteSeries {
    const key = `${method} ${client} ${version} ${tenant}`;
    let series = this.#series.get(key);
    if (series === undefined) {
      const counts = { attempts: 0, required: 0, failed: 0, missingAllowed: 0 };
      series = { method, client, version, tenant, counts };
      this.#series.set(key, series);
    }
    return series;
  }

  #countInto(counter: Counter, name: keyof Counts): void {
    counter.reset();
    for (const { method, client, version, tenant, counts } of this.#series.values()) {
      const caller = this.#hasCallerLabels ? { client, client_version: version, tenant } : {};
      counter.inc({ method, route: CUSTOMER_ROUTE, ...caller }, counts[name]);
    }
  }
}
