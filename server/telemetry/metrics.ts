import { Counter, Registry } from "prom-client";
import { WRITE_METHODS } from "../domain/policy.ts";
import type { Reply } from "../http/reply.ts";
import type { RequestContext, RoutePath } from "../http/request-context.ts";
import { ClientVersions, versionOf } from "./client-versions.ts";
import { RequestMetrics } from "./request-metrics.ts";

const CUSTOMER_ROUTE: RoutePath = "/customers/{id}";
const CALLER_LABELS = ["client", "client_version", "tenant"] as const;

const METHODS = new Set(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]);

/** The series of one caller's writes by one method. */
type WriteSeries = Readonly<Record<"attempts" | "required" | "failed" | "missingAllowed", Counter.Internal>>;

/**
 * What is counted (Prometheus text format). One event moves one series, and there is never a total beside its
 * parts: a sum would count double.
 */
export class Metrics {
  readonly #registry = new Registry();
  readonly #hasCallerLabels: boolean;
  readonly #versions: ClientVersions;
  readonly #attempts: Counter;
  readonly #required: Counter;
  readonly #failed: Counter;
  readonly #missingAllowed: Counter;
  readonly #requests: RequestMetrics;
  readonly #writeSeries = new Map<string, WriteSeries>();

  /**
   * @param hasCallerLabels false where anyone may read the metrics: then no client or tenant is named in them
   * @param versions which of a client's versions are named
   */
  constructor(hasCallerLabels: boolean, versions = new ClientVersions()) {
    this.#hasCallerLabels = hasCallerLabels;
    this.#versions = versions;
    this.#required = this.#writeCounter(
      "http_precondition_required_total",
      "Writes refused with 428: If-Match absent or blank.",
    );
    this.#failed = this.#writeCounter(
      "http_precondition_failed_total",
      "Writes refused with 412: If-Match was not the current entity-tag.",
    );
    this.#attempts = this.#writeCounter(
      "http_write_attempts_total",
      "PUT, PATCH and DELETE of an authenticated caller, whatever came of them.",
    );
    this.#missingAllowed = this.#writeCounter(
      "http_precondition_missing_allowed_total",
      "Writes without If-Match that were applied because the rollout still allows them.",
    );
    this.#requests = new RequestMetrics(this.#registry);
    for (const method of WRITE_METHODS) this.#writeSeriesOf(method, "", "", "");
  }

  record(context: RequestContext, reply: Reply, seconds: number): void {
    const { request, route, caller } = context;
    const method = METHODS.has(request.method) ? request.method : "other";
    this.#requests.observe(method, route, reply.status, seconds);
    const isWrite = route === CUSTOMER_ROUTE && (WRITE_METHODS as readonly string[]).includes(method);
    if (!isWrite || caller === null) return;
    const version = this.#versions.named(caller.client, versionOf(request.headers.get("user-agent")));
    const write = this.#writeSeriesOf(method, caller.client, version, caller.tenant ?? "");
    write.attempts.inc();
    if (reply.status === 428) write.required.inc();
    if (reply.status === 412) write.failed.inc();
    if (reply.allowedWithoutIfMatch === true) write.missingAllowed.inc();
  }

  /** The exposition, in Prometheus' text format 0.0.4. */
  text(): Promise<string> {
    return this.#registry.metrics();
  }

  get contentType(): string {
    return this.#registry.contentType;
  }

  #writeCounter(name: string, help: string): Counter {
    const labelNames = ["method", "route", ...(this.#hasCallerLabels ? CALLER_LABELS : [])];
    return new Counter({ name, help, labelNames, registers: [this.#registry] });
  }

  /** All four begin at 0 together: a series that begins at its first event loses that event to every rate(). */
  #writeSeriesOf(method: string, client: string, version: string, tenant: string): WriteSeries {
    const key = this.#hasCallerLabels ? `${method} ${client} ${version} ${tenant}` : method;
    let series = this.#writeSeries.get(key);
    if (series === undefined) {
      const caller = this.#hasCallerLabels ? { client, client_version: version, tenant } : {};
      const begin = (counter: Counter): Counter.Internal => {
        const begun = counter.labels({ method, route: CUSTOMER_ROUTE, ...caller });
        begun.inc(0);
        return begun;
      };
      series = {
        attempts: begin(this.#attempts),
        required: begin(this.#required),
        failed: begin(this.#failed),
        missingAllowed: begin(this.#missingAllowed),
      };
      this.#writeSeries.set(key, series);
    }
    return series;
  }
}
