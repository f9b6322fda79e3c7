import { Counter, Histogram, type Registry } from "prom-client";
import { METHODS } from "../domain/policy.ts";
import type { AnsweredRequest } from "./answered-request.ts";

const BUCKET_SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10];

const LABELS = ["method", "route", "status"] as const;
/** Any other method counts as `other`: a client's invention must not make series. */
const NAMED_METHODS: ReadonlySet<string> = new Set([...METHODS, "HEAD", "OPTIONS"]);

/** How often a request of one method, route and status was answered, and in which times. */
export class RequestMetrics {
  readonly #durations: Histogram<(typeof LABELS)[number]>;

  constructor(registry: Registry) {
    const registers = [registry];
    const durations = new Histogram({
      name: "http_request_duration_seconds",
      help: "Time from the request's headers to its answer.",
      labelNames: LABELS,
      buckets: BUCKET_SECONDS,
      registers,
    });
    this.#durations = durations;
    new Counter({
      name: "http_requests_total",
      help: "Requests answered.",
      labelNames: LABELS,
      registers,
      // The histogram counts them already: one observation a request.
      async collect() {
        const { values } = await durations.get();
        // In one go: scrapes may overlap.
        this.reset();
        for (const { metricName, labels, value } of values)
          if (metricName === "http_request_duration_seconds_count") this.inc(labels, value);
      },
    });
  }

  record({ method, route, status, durationMs }: AnsweredRequest): void {
    this.#durations.observe(
      { method: NAMED_METHODS.has(method) ? method : "other", route, status },
      durationMs / 1000,
    );
  }
}
