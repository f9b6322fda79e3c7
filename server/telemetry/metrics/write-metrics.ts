import type { Registry } from "prom-client";
import { WRITE_METHODS } from "../../domain/policy/policy.ts";
import { OTHER_VERSIONS } from "../../domain/rollout/write-count.ts";
import { type AnsweredWrite, CUSTOMER_ROUTE } from "../answered-write.ts";
import { ClientVersions } from "../client-versions.ts";
import { OTHERS, RecentSeries, SERIES_MAX } from "./recent-series.ts";
import { type Sample, scrapedCounter } from "./scraped-metric.ts";

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
  readonly #series: RecentSeries<WriteSeries>;

  /**
   * @param hasCallerLabels false where anyone may read the metrics: then they name no client and no tenant
   */
  constructor(registry: Registry, hasCallerLabels: boolean, seriesMax = SERIES_MAX) {
    this.#hasCallerLabels = hasCallerLabels;
    this.#series = new RecentSeries(seriesMax, (series) => this.#retire(series));
    const labelNames = [
      "method",
      "route",
      ...(hasCallerLabels ? ["client", "client_version", "tenant"] : []),
    ];
    for (const key of Object.keys(COUNTERS) as (keyof Counts)[])
      scrapedCounter(registry, { ...COUNTERS[key], labelNames }, () => this.#samplesOf(key));
    for (const method of WRITE_METHODS) this.#unnamedOf(method, "");
  }

  record({ answered, method, client, tenant, version }: AnsweredWrite): void {
    const { status, isAllowedWithoutIfMatch, isReplayed } = answered;
    const { counts } = this.#hasCallerLabels
      ? this.#seriesOfCaller(method, client, version, tenant)
      : this.#unnamedOf(method, "");
    counts.attempts += 1;
    if (status === 428) counts.required += 1;
    if (status === 412) counts.failed += 1;
    if (isAllowedWithoutIfMatch && !isReplayed) counts.missingAllowed += 1;
  }

  #seriesOfCaller(method: string, client: string, version: string, tenant: string): WriteSeries {
    const oldest = version === "" ? null : this.#versions.note(client, version);
    if (oldest !== null) this.#retireVersion(client, oldest);
    return this.#namedOf(method, client, version, tenant);
  }

  /** Moves the counts of a version to {@link OTHER_VERSIONS}, so that no sum over a client's versions falls. */
  #retireVersion(client: string, version: string): void {
    for (const series of this.#series.take((each) => each.client === client && each.version === version)) {
      addTo(this.#namedOf(series.method, client, OTHER_VERSIONS, series.tenant), series);
    }
  }

  /** Moves the counts of callers to {@link OTHERS}, so that no sum over all callers falls. */
  #retire(series: WriteSeries): void {
    this.#versions.forget(series.client, series.version);
    addTo(this.#unnamedOf(series.method, OTHERS), series);
  }

  #namedOf(method: string, client: string, version: string, tenant: string): WriteSeries {
    const make = () => newSeries(method, client, version, tenant);
    return this.#series.move(`${method} ${client} ${version} ${tenant}`, make);
  }

  /** The series of a method without a caller, or with {@link OTHERS} as the caller. */
  #unnamedOf(method: string, client: "" | typeof OTHERS): WriteSeries {
    const version = client === OTHERS ? OTHER_VERSIONS : "";
    return this.#series.unnamed(`${method} ${client}`, () => newSeries(method, client, version, ""));
  }

  #samplesOf(name: keyof Counts): readonly Sample[] {
    return this.#series.values().map(({ method, client, version, tenant, counts }) => {
      const caller = this.#hasCallerLabels ? { client, client_version: version, tenant } : {};
      return [counts[name], { method, route: CUSTOMER_ROUTE, ...caller }];
    });
  }
}

function newSeries(method: string, client: string, version: string, tenant: string): WriteSeries {
  const counts = { attempts: 0, required: 0, failed: 0, missingAllowed: 0 };
  return { method, client, version, tenant, counts };
}

function addTo({ counts }: WriteSeries, retired: WriteSeries): void {
  for (const name of Object.keys(COUNTERS) as (keyof Counts)[]) counts[name] += retired.counts[name];
}
