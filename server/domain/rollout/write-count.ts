import type { WriteMethod } from "../policy/policy.ts";
import { DAY_MS, dayOf } from "../text/iso-time.ts";

/** How often one version of a client wrote by one method on one day, and how many of these writes had If-Match. */
export type WriteCount = {
  readonly tenant: string;
  readonly client: string;
  /** Of the User-Agent; "" without one, {@link OTHER_VERSIONS} beyond {@link VERSIONS_MAX}. */
  readonly version: string;
  readonly method: WriteMethod;
  /** UTC, such as 2026-11-28. */
  readonly day: string;
  /** Writes with If-Match that were applied, or refused because it was stale. */
  readonly withIfMatch: number;
  /** Writes without If-Match that were applied because the rollout allows them. */
  readonly allowed: number;
  /** Writes without If-Match that were refused (428). */
  readonly refused: number;
  /** ms since 1970, as all times here. */
  readonly firstAtMs: number;
  readonly lastWithAtMs: number | null;
  readonly firstWithoutAtMs: number | null;
  readonly lastWithoutAtMs: number | null;
};

/** What came of a write as to If-Match. */
export type WriteKind = "with" | "allowed" | "refused";

/** Maximum number of versions that are counted apart, of one client of one tenant on one day: a caller chooses them. */
export const VERSIONS_MAX = 20;
/** Where the further ones are counted. No version looks like this. */
export const OTHER_VERSIONS = "other";

/** How long counts are kept. Longer than most rollouts take, and than any client pauses. */
export const DAYS_KEPT = 180;

/** The first day of which counts are kept. */
export function firstDayKept(nowMs: number): string {
  return dayOf(nowMs - DAYS_KEPT * DAY_MS);
}

type Series = Pick<WriteCount, "tenant" | "client" | "version" | "method">;

/** The count of one write. */
export function countOf(series: Series, kind: WriteKind, atMs: number): WriteCount {
  const isWith = kind === "with";
  return {
    ...series,
    day: dayOf(atMs),
    withIfMatch: isWith ? 1 : 0,
    allowed: kind === "allowed" ? 1 : 0,
    refused: kind === "refused" ? 1 : 0,
    firstAtMs: atMs,
    lastWithAtMs: isWith ? atMs : null,
    firstWithoutAtMs: isWith ? null : atMs,
    lastWithoutAtMs: isWith ? null : atMs,
  };
}

/** Both counts as one, of the series and the day of the first. */
export function sumOf(one: WriteCount, other: WriteCount): WriteCount {
  return {
    ...one,
    withIfMatch: one.withIfMatch + other.withIfMatch,
    allowed: one.allowed + other.allowed,
    refused: one.refused + other.refused,
    firstAtMs: Math.min(one.firstAtMs, other.firstAtMs),
    lastWithAtMs: latest(one.lastWithAtMs, other.lastWithAtMs),
    firstWithoutAtMs: earliest(one.firstWithoutAtMs, other.firstWithoutAtMs),
    lastWithoutAtMs: latest(one.lastWithoutAtMs, other.lastWithoutAtMs),
  };
}

/** The counts of all days as one for each series, in the order in which the series come first. */
export function sumBySeries(counts: readonly WriteCount[]): readonly WriteCount[] {
  const sums = new Map<string, WriteCount>();
  for (const count of counts) addTo(sums, seriesKey(count), count);
  return [...sums.values()];
}

/** No name holds a space. */
export function seriesKey({ tenant, client, version, method }: Series): string {
  return `${tenant} ${client} ${version} ${method}`;
}

/** Adds a count to those that have the same key. */
export function addTo(sums: Map<string, WriteCount>, key: string, count: WriteCount): void {
  const before = sums.get(key);
  sums.set(key, before === undefined ? count : sumOf(before, count));
}

export function latest(one: number | null, other: number | null): number | null {
  return one === null || other === null ? (one ?? other) : Math.max(one, other);
}

function earliest(one: number | null, other: number | null): number | null {
  return one === null || other === null ? (one ?? other) : Math.min(one, other);
}

/** A version that is counted for a client on a day. */
export type KnownVersion = Pick<WriteCount, "tenant" | "client" | "day" | "version">;

/** Which versions have a place of their own, and so are counted apart: at most {@link VERSIONS_MAX} under one key. */
export class VersionPlaces {
  readonly #named = new Map<string, Set<string>>();

  /** A version that has a place already. */
  take(key: string, version: string): void {
    this.#of(key).add(version);
  }

  /** Gives the version a place, where there is one left. @returns what it is counted as */
  versionFor(key: string, version: string): string {
    const named = this.#of(key);
    if (named.size < VERSIONS_MAX) named.add(version);
    return named.has(version) ? version : OTHER_VERSIONS;
  }

  #of(key: string): Set<string> {
    return this.#named.getOrInsertComputed(key, () => new Set());
  }
}

/**
 * Counts versions beyond {@link VERSIONS_MAX} as one.
 *
 * @param known the versions that have a row of their own
 */
export function boundVersions(
  counts: readonly WriteCount[],
  known: readonly KnownVersion[],
): readonly WriteCount[] {
  const places = new VersionPlaces();
  for (const row of known) places.take(clientDayOf(row), row.version);
  const bounded = new Map<string, WriteCount>();
  for (const count of counts) {
    const key = clientDayOf(count);
    const version = places.versionFor(key, count.version);
    addTo(bounded, `${key} ${version} ${count.method}`, { ...count, version });
  }
  return [...bounded.values()];
}

function clientDayOf({ tenant, client, day }: KnownVersion): string {
  return `${tenant} ${client} ${day}`;
}
