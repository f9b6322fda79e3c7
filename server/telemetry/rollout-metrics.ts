import { Gauge, type Registry } from "prom-client";
import { andThen, type MaybePromise } from "../domain/maybe-promise.ts";
import type { Enforcement } from "../domain/policy.ts";
import { CLIENT_STATES, type ClientReadiness, readinessOf } from "../domain/rollout/client-readiness.ts";
import { sumBySeries, type WriteCount } from "../domain/rollout/write-count.ts";
import { StoreUnavailable } from "../storage/customer-store.ts";

/** Counts are read, and clients judged, at most this often: every service of a database reports the same ones. */
const READ_EVERY_MS = 60_000;

export type RolloutParts = {
  /** All counts that are kept. */
  readonly counts: () => MaybePromise<readonly WriteCount[]>;
  readonly enforcement: () => Enforcement;
  /** ms since 1970. */
  readonly now: () => number;
};

type Report = {
  readonly clients: readonly ClientReadiness[];
  /** Those that have written without If-Match. */
  readonly series: readonly WriteCount[];
};

/** How far clients are with If-Match, of all services on the database, and since before this one was started. */
export class RolloutMetrics {
  readonly #parts: RolloutParts;
  #counts: readonly WriteCount[] = [];
  #made: (Report & { readonly enforcement: Enforcement }) | null = null;
  #readAt = Number.NEGATIVE_INFINITY;

  /** @param hasCallerLabels false where anyone may read the metrics: then they name no client and no tenant */
  constructor(registry: Registry, hasCallerLabels: boolean, parts: RolloutParts) {
    this.#parts = parts;
    const gauge = (
      name: string,
      help: string,
      labelNames: string[],
      set: (gauge: Gauge, report: Report) => void,
    ): void => {
      const report = (): Report => this.#report();
      new Gauge({
        name,
        help,
        labelNames,
        registers: [registry],
        collect() {
          this.reset();
          set(this, report());
        },
      });
    };
    gauge(
      "customers_rollout_end_seconds",
      "When the rollout of the policy ends, in seconds since 1970; NaN without one.",
      [],
      (end) => {
        const enforcement = parts.enforcement();
        end.set(enforcement.mode === "observe" ? enforcement.untilMs / 1000 : Number.NaN);
      },
    );
    gauge(
      "customers_rollout_clients",
      "Clients that write, by how far they are with If-Match. The same on every service of a database, at most a minute old.",
      ["state"],
      (clients, report) => {
        for (const state of CLIENT_STATES) clients.set({ state }, 0);
        for (const { state } of report.clients) clients.inc({ state });
      },
    );
    if (!hasCallerLabels) return;
    gauge(
      "customers_rollout_client_state",
      "Always 1; the labels are a client and how far it is.",
      ["client", "state"],
      (states, report) => {
        for (const { client, state } of report.clients) states.set({ client, state }, 1);
      },
    );
    const labelNames = ["method", "client", "client_version", "tenant"];
    gauge(
      "customers_rollout_writes_without_if_match",
      "Writes without If-Match of the last 180 days, applied or refused, on all services of the database.",
      labelNames,
      (writes, { series }) => {
        for (const count of series) writes.set(labelsOf(count), count.allowed + count.refused);
      },
    );
    gauge(
      "customers_rollout_last_without_if_match_seconds",
      "When the last of them came, in seconds since 1970.",
      labelNames,
      (last, { series }) => {
        for (const count of series) last.set(labelsOf(count), (count.lastWithoutAtMs ?? 0) / 1000);
      },
    );
  }

  #report(): Report {
    this.#read();
    const enforcement = this.#parts.enforcement();
    if (this.#made?.enforcement !== enforcement) {
      const clients = readinessOf(this.#counts, enforcement, this.#parts.now());
      const series = sumBySeries(this.#counts).filter(({ lastWithoutAtMs }) => lastWithoutAtMs !== null);
      this.#made = { enforcement, clients, series };
    }
    return this.#made;
  }

  /** Where the database is a server, in the background: the next scrape shows it. */
  #read(): void {
    if (performance.now() - this.#readAt < READ_EVERY_MS) return;
    this.#readAt = performance.now();
    try {
      const read = andThen(this.#parts.counts(), (counts) => {
        this.#counts = counts;
        this.#made = null;
      });
      if (read instanceof Promise) read.catch(ignoreUnavailable);
    } catch (error) {
      ignoreUnavailable(error);
    }
  }
}

/** Requests say so, and the other metrics go on. */
function ignoreUnavailable(error: unknown): void {
  if (!(error instanceof StoreUnavailable)) throw error;
}

function labelsOf({ method, client, version, tenant }: WriteCount): Record<string, string> {
  return { method, client, client_version: version, tenant };
}
