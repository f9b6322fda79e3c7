import { type Enforcement, isEnforced, type WriteMethod } from "../policy/policy.ts";
import { DAY_MS } from "../text/iso-time.ts";
import { latest, type WriteCount } from "./write-count.ts";

/**
 * How far a client is. A policy enforces a client by its name, in every tenant, so all of its tenants count.
 *
 * - `ready`: it can be enforced: for long enough, every write of it has had If-Match.
 * - `clean`: no write of it was seen without, but it is not known for long enough.
 * - `would-break`: it writes without, and enforcement would refuse that.
 * - `regressed`: the same, after it had been clean for long enough.
 * - `silent`: its last write had none, and it has written nothing for long.
 * - `refused`: it is enforced, writes without, and gets 428.
 * - `enforced`: it is enforced, and writes with If-Match.
 */
export const CLIENT_STATES = [
  "would-break",
  "regressed",
  "silent",
  "clean",
  "ready",
  "refused",
  "enforced",
] as const;
export type ClientState = (typeof CLIENT_STATES)[number];

export type ClientReadiness = {
  readonly client: string;
  readonly state: ClientState;
  /** Since when every write has had If-Match, as far back as counts are kept. ms since 1970. */
  readonly cleanSinceMs: number;
  /** When it last wrote without after it had been clean for long enough; null: never. */
  readonly regressedAtMs: number | null;
};

/** How many days a client must have been clean to be ready, where the operator says nothing else. */
export const CLEAN_DAYS = 7;

/** What readiness is judged by: counts that may be summed over tenants and versions. */
export type ClientDay = Omit<WriteCount, "tenant" | "version">;

/**
 * Judges each client by what it wrote. In the order of names.
 *
 * @param cleanDays 0: a client is ready when its last write had If-Match
 */
export function readinessOf(
  counts: readonly ClientDay[],
  enforcement: Enforcement,
  nowMs: number,
  cleanDays = CLEAN_DAYS,
): readonly ClientReadiness[] {
  const clients = [...Map.groupBy(counts, ({ client }) => client)];
  clients.sort(([one], [other]) => (one < other ? -1 : 1));
  return clients.map(([client, rows]) => {
    const isMethodEnforced = (method: WriteMethod): boolean => isEnforced(enforcement, client, method, nowMs);
    const all = periodOf(rows);
    const open = periodOf(rows.filter(({ method }) => !isMethodEnforced(method)));
    const regressedAtMs = regressionOf(rows, Math.max(cleanDays, 1) * DAY_MS);
    const cleanSinceMs = all.lastWithoutAtMs ?? all.firstAtMs;
    const state = (): ClientState => {
      const openUse = useOf(open, nowMs, cleanDays);
      if (openUse === "without") return regressedAtMs === null ? "would-break" : "regressed";
      if (openUse === "silent") return "silent";
      if (useOf(all, nowMs, cleanDays) === "without") return "refused";
      if (rows.every(({ method }) => isMethodEnforced(method))) return "enforced";
      return nowMs - cleanSinceMs >= cleanDays * DAY_MS ? "ready" : "clean";
    };
    return { client, state: state(), cleanSinceMs, regressedAtMs };
  });
}

type Period = Pick<WriteCount, "firstAtMs" | "lastWithAtMs" | "lastWithoutAtMs">;

function periodOf(rows: readonly Period[]): Period {
  return {
    firstAtMs: rows.reduce((first, { firstAtMs }) => Math.min(first, firstAtMs), Number.POSITIVE_INFINITY),
    lastWithAtMs: rows.reduce<number | null>((last, row) => latest(last, row.lastWithAtMs), null),
    lastWithoutAtMs: rows.reduce<number | null>((last, row) => latest(last, row.lastWithoutAtMs), null),
  };
}

/** How clients of a period write: without If-Match lately; without, and then nothing more; or with it. */
function useOf(
  { lastWithAtMs, lastWithoutAtMs }: Period,
  nowMs: number,
  cleanDays: number,
): "without" | "silent" | "with" {
  if (lastWithoutAtMs === null) return "with";
  const ageMs = nowMs - lastWithoutAtMs;
  const hasWrittenSince = lastWithAtMs !== null && lastWithAtMs > lastWithoutAtMs;
  if (hasWrittenSince) return ageMs < cleanDays * DAY_MS ? "without" : "with";
  return ageMs < Math.max(cleanDays, CLEAN_DAYS) * DAY_MS ? "without" : "silent";
}

/**
 * @param cleanMs a day at least: times within a day are known as the first and the last alone
 * @returns when a client last wrote without If-Match after it had written with it, and only with it, for that long
 */
function regressionOf(rows: readonly ClientDay[], cleanMs: number): number | null {
  let cleanSinceMs = periodOf(rows).firstAtMs;
  let regressedAtMs: number | null = null;
  const hasWrittenBetween = (fromMs: number, toMs: number): boolean =>
    rows.some(
      ({ firstAtMs, lastWithAtMs }) => lastWithAtMs !== null && lastWithAtMs >= fromMs && firstAtMs < toMs,
    );
  const lapses = rows
    .flatMap(({ firstWithoutAtMs, lastWithoutAtMs }) =>
      firstWithoutAtMs === null || lastWithoutAtMs === null ? [] : [{ firstWithoutAtMs, lastWithoutAtMs }],
    )
    .sort((one, other) => one.firstWithoutAtMs - other.firstWithoutAtMs);
  for (const { firstWithoutAtMs, lastWithoutAtMs } of lapses) {
    const isLong = firstWithoutAtMs - cleanSinceMs >= cleanMs;
    if (isLong && hasWrittenBetween(cleanSinceMs, firstWithoutAtMs)) regressedAtMs = firstWithoutAtMs;
    cleanSinceMs = Math.max(cleanSinceMs, lastWithoutAtMs);
  }
  return regressedAtMs;
}
