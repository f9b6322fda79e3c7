import { setImmediate as nextTurn } from "node:timers/promises";
import type { Registry } from "prom-client";
import type { Enforcement } from "../../domain/policy/policy.ts";
import {
  CLIENT_STATES,
  type ClientReadiness,
  type ClientState,
  readinessOf,
} from "../../domain/rollout/client-readiness.ts";
import { ObservedWrites } from "../../domain/rollout/observed-writes.ts";
import type { WriteCount } from "../../domain/rollout/write-count.ts";
import { LastAnswer } from "../last-answer.ts";
import { SERIES_MAX } from "./recent-series.ts";
import { type Sample, scrapedGauge } from "./scraped-metric.ts";

/** Counts are read, and clients judged, at most this often: every service of a database reports the same ones. */
const READ_EVERY_MS = 60_000;
/** Reading takes no more than a twentieth of the time, however many counts there are. */
const PAUSE_PER_READ = 20;
/** How many counts of a day are judged in one turn of the event loop. */
const JUDGED_IN_TURN = 1_000;
/** Which are left out first above it: the last ones. */
const NAMED_FIRST = [
  ...["regressed", "would-break", "refused", "silent"],
  ...["clean", "ready", "enforced"],
] as const satisfies readonly ClientState[];

export type RolloutParts = {
  /** All counts that are kept, in pages. */
  readonly counts: () => AsyncIterable<readonly WriteCount[]>;
  readonly enforcement: () => Enforcement;
  /** ms since 1970. */
  readonly now: () => number;
};

type Report = {
  readonly clients: readonly ClientReadiness[];
  /** Those that have a series. */
  readonly named: readonly ClientReadiness[];
  /** Those that have written without If-Match, and did so last. */
  readonly series: readonly WriteCount[];
};

type Judged = {
  readonly observed: ObservedWrites;
  readonly enforcement: Enforcement;
  readonly report: Promise<Report>;
};

/**
 * How far clients are with If-Match, of all services on the database, and since before this one was started. There may be
 * so many counts that reading and judging them takes seconds, so requests are answered in between.
 *
 * @param hasCallerLabels false where anyone may read the metrics: then they name no client and no tenant
 */
export function registerRolloutMetrics(
  registry: Registry,
  hasCallerLabels: boolean,
  parts: RolloutParts,
  seriesMax = SERIES_MAX,
): void {
  const observed = new LastAnswer(
    new ObservedWrites(),
    (tookMs) => Math.max(READ_EVERY_MS, PAUSE_PER_READ * tookMs),
    () => observedIn(parts.counts()),
  );
  let judged: Judged | null = null;
  async function report(): Promise<Report> {
    const now = await observed.get();
    const enforcement = parts.enforcement();
    if (judged?.observed !== now || judged.enforcement !== enforcement) {
      judged = { observed: now, enforcement, report: judge(now, enforcement, parts.now(), seriesMax) };
    }
    return await judged.report;
  }
  const gauge = (
    name: string,
    help: string,
    labelNames: readonly string[],
    read: (report: Report) => number | readonly Sample[],
  ): void => scrapedGauge(registry, { name, help, labelNames }, async () => read(await report()));
  gauge(
    "customers_rollout_end_seconds",
    "When the rollout of the policy ends, in seconds since 1970; NaN without one.",
    [],
    () => {
      const enforcement = parts.enforcement();
      return enforcement.mode === "observe" ? enforcement.untilMs / 1000 : Number.NaN;
    },
  );
  gauge(
    "customers_rollout_clients",
    "Clients that write, by how far they are with If-Match. The same on every service of a database, at most a minute old.",
    ["state"],
    ({ clients }) =>
      CLIENT_STATES.map((state) => [clients.filter((client) => client.state === state).length, { state }]),
  );
  if (!hasCallerLabels) return;
  gauge(
    "customers_rollout_client_state",
    "Always 1; the labels are a client and how far it is.",
    ["client", "state"],
    ({ named }) => named.map(({ client, state }) => [1, { client, state }]),
  );
  const labelNames = ["method", "client", "client_version", "tenant"];
  gauge(
    "customers_rollout_writes_without_if_match",
    "Writes without If-Match of the last 180 days, applied or refused, on all services of the database.",
    labelNames,
    ({ series }) => series.map((count) => [count.allowed + count.refused, labelsOf(count)]),
  );
  gauge(
    "customers_rollout_last_without_if_match_seconds",
    "When the last of them came, in seconds since 1970.",
    labelNames,
    ({ series }) => series.map((count) => [(count.lastWithoutAtMs ?? 0) / 1000, labelsOf(count)]),
  );
}

async function observedIn(pages: AsyncIterable<readonly WriteCount[]>): Promise<ObservedWrites> {
  const observed = new ObservedWrites();
  let isFirst = true;
  for await (const counts of pages) {
    if (!isFirst) await nextTurn();
    isFirst = false;
    observed.add(counts);
  }
  return observed;
}

async function judge(
  observed: ObservedWrites,
  enforcement: Enforcement,
  nowMs: number,
  seriesMax: number,
): Promise<Report> {
  const clients: ClientReadiness[] = [];
  const series: WriteCount[] = [];
  let judged = 0;
  for (const client of observed.clients) {
    const days = observed.daysOf(client);
    if (judged + days.length > JUDGED_IN_TURN) {
      await nextTurn();
      judged = 0;
    }
    judged += days.length;
    clients.push(...readinessOf(days, enforcement, nowMs));
    series.push(...observed.withoutIfMatch(client));
  }
  const named = NAMED_FIRST.flatMap((state) => clients.filter((client) => client.state === state));
  series.sort((one, other) => (other.lastWithoutAtMs ?? 0) - (one.lastWithoutAtMs ?? 0));
  return { clients, named: named.slice(0, seriesMax), series: series.slice(0, seriesMax) };
}

function labelsOf({ method, client, version, tenant }: WriteCount): Record<string, string> {
  return { method, client, client_version: version, tenant };
}
