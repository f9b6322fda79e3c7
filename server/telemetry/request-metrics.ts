import { Histogram, type MetricValueWithName, type Registry } from "prom-client";
import { METHODS } from "../domain/policy.ts";
import type { AnsweredRequest } from "./answered-request.ts";
import { PlainCounter } from "./plain-counter.ts";

const BUCKET_SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10];

const LABELS = ["method", "route", "status"];
/** Any other method counts as `other`: a client's invention must not make series. */
const NAMED_METHODS: ReadonlySet<string> = new Set([...METHODS, "HEAD", "OPTIONS"]);

type Labels = { readonly method: string; readonly route: string; readonly status: number };

/** How often a request of one method, route and status was answered, and in which times. */
class RequestSeries {
  readonly labels: Labels;
  readonly inBucket = new Array<number>(BUCKET_SECONDS.length).fill(0);
  count = 0;
  seconds = 0;

  constructor(labels: Labels) {
    this.labels = labels;
  }

  observe(seconds: number): void {
    this.count += 1;
    this.seconds += seconds;
    for (let bucket = 0; bucket < BUCKET_SECONDS.length; bucket += 1) {
      if (seconds > (BUCKET_SECONDS[bucket] ?? 0)) continue;
      this.inBucket[bucket] = (this.inBucket[bucket] ?? 0) + 1;
      return;
    }
  }
}

/**
 * `http_requests_total` and `http_request_duration_seconds`, counted in plain
 * fields: every request passes here, and the library's own counting costs a
 * tenth of a read. Collected, they are metrics of its registry like any other.
 */
export class RequestMetrics {
  readonly #series = new Map<string, Map<string, Map<number, RequestSeries>>>();

  constructor(registry: Registry) {
    new PlainCounter({
      name: "http_requests_total",
      help: "Requests answered.",
      labelNames: LABELS,
      registry,
      values: () => this.#all().map(({ labels, count }) => ({ labels, value: count })),
    });
    new RequestHistogram(this, registry);
  }

  record({ method, route, status, durationMs }: AnsweredRequest): void {
    const named = NAMED_METHODS.has(method) ? method : "other";
    this.#seriesOf(named, route, status).observe(durationMs / 1000);
  }

  /** @param name of the histogram */
  durations(name: string): MetricValueWithName<string>[] {
    return this.#all().flatMap(({ labels, inBucket, count, seconds }) => {
      let upTo = 0;
      const buckets = BUCKET_SECONDS.map((le, bucket) => {
        upTo += inBucket[bucket] ?? 0;
        return { metricName: `${name}_bucket`, labels: { ...labels, le }, value: upTo };
      });
      return [
        ...buckets,
        { metricName: `${name}_bucket`, labels: { ...labels, le: "+Inf" }, value: count },
        { metricName: `${name}_sum`, labels, value: seconds },
        { metricName: `${name}_count`, labels, value: count },
      ];
    });
  }

  #all(): RequestSeries[] {
    return [...this.#series.values()].flatMap((methods) =>
      [...methods.values()].flatMap((statuses) => [...statuses.values()]),
    );
  }

  #seriesOf(method: string, route: string, status: number): RequestSeries {
    let methods = this.#series.get(route);
    if (methods === undefined) {
      methods = new Map();
      this.#series.set(route, methods);
    }
    let statuses = methods.get(method);
    if (statuses === undefined) {
      statuses = new Map();
      methods.set(method, statuses);
    }
    let series = statuses.get(status);
    if (series === undefined) {
      series = new RequestSeries({ method, route, status });
      statuses.set(status, series);
    }
    return series;
  }
}

const DURATION = {
  name: "http_request_duration_seconds",
  help: "Time from the request's headers to its answer.",
  labelNames: LABELS,
  buckets: BUCKET_SECONDS,
};

class RequestHistogram extends Histogram {
  readonly #metrics: RequestMetrics;
  /** Name, help and type as the library gives them. */
  readonly #shape = new Histogram({ ...DURATION, registers: [] });

  constructor(metrics: RequestMetrics, registry: Registry) {
    super({ ...DURATION, registers: [registry] });
    this.#metrics = metrics;
  }

  override async get(): ReturnType<Histogram["get"]> {
    return { ...(await this.#shape.get()), values: this.#metrics.durations(DURATION.name) };
  }

  /** What the registry asks for its text; the library's own would read the library's own buckets. */
  getForPromString(): ReturnType<Histogram["get"]> {
    return this.get();
  }
}
