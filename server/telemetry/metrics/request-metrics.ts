import type { Registry } from "prom-client";
import Histogram from "prom-client/lib/histogram.js";
import { METHODS } from "../../domain/policy/policy.ts";
import type { AnsweredRequest } from "../answered-request.ts";
import { scrapedCounter } from "./scraped-metric.ts";

const BUCKET_SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10];

const LABELS = ["method", "route", "status"] as const;
/** Any other method counts as `other`: a client's invention must not make series. */
const NAMED_METHODS: ReadonlySet<string> = new Set([...METHODS, "HEAD", "OPTIONS"]);

type Label = (typeof LABELS)[number];

/** The times of one method, route and status that the histogram has not observed yet. */
class Series {
  readonly labels: Readonly<Record<Label, string | number>>;
  readonly #histogram: Histogram<Label>;
  #seconds: number[] = [];

  constructor(histogram: Histogram<Label>, labels: Series["labels"]) {
    this.#histogram = histogram;
    this.labels = labels;
  }

  record(seconds: number): void {
    if (this.#seconds.push(seconds) >= GATHERED_MAX) this.observe();
  }

  observe(): void {
    const gathered = this.#seconds;
    this.#seconds = [];
    for (const seconds of gathered) this.#histogram.observe(this.labels, seconds);
  }
}

/**
 * The histogram hashes its labels at each observation: amid requests that takes several times as long as in a row.
 */
const GATHERED_MAX = 256;

/** How often a request of one method, route and status was answered, and in which times. */
export class RequestMetrics {
  readonly #durations: Histogram<Label>;
  readonly #series = new Map<string, Series>();
  /** Of the last request: most are of the same series. */
  #last: Series | null = null;

  constructor(registry: Registry) {
    const durations = new Histogram({
      name: "http_request_duration_seconds",
      help: "Time from the request's headers to its answer.",
      labelNames: LABELS,
      buckets: BUCKET_SECONDS,
      registers: [registry],
      collect: () => {
        for (const series of this.#series.values()) series.observe();
      },
    });
    this.#durations = durations;
    const answered = { name: "http_requests_total", help: "Requests answered.", labelNames: LABELS };
    // The histogram counts them already: one observation a request.
    scrapedCounter(registry, answered, async () => {
      const counts = (await durations.get()).values.filter(
        ({ metricName }) => metricName === "http_request_duration_seconds_count",
      );
      return counts.map(({ labels, value }) => [value, labels]);
    });
  }

  record({ method: given, route, status, durationMs }: AnsweredRequest): void {
    const method = NAMED_METHODS.has(given) ? given : "other";
    const last = this.#last?.labels;
    const isLast = last?.method === method && last.route === route && last.status === status;
    if (!isLast) this.#last = this.#seriesOf(method, route, status);
    this.#last?.record(durationMs / 1000);
  }

  #seriesOf(method: string, route: string, status: number): Series {
    return this.#series.getOrInsertComputed(
      `${method} ${route} ${status}`,
      () => new Series(this.#durations, { method, route, status }),
    );
  }
}
