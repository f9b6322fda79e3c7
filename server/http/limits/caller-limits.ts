import { limitHolderOf } from "../../domain/network/network.ts";
import {
  type Limit,
  type LimitName,
  type Limits,
  limitsOf,
  WRONG_TOKENS_OF_ADDRESS,
} from "../../domain/policy/limits.ts";
import { type Draw, draw, type Quota } from "../../domain/policy/token-bucket.ts";
import { type Refusal, refuse } from "../../domain/problem.ts";
import type { LimitMetrics } from "../../telemetry/metrics/limit-metrics.ts";
import { Buckets } from "./buckets.ts";

/** The RateLimit fields of a reply (draft-ietf-httpapi-ratelimit-headers-10, structured fields). */
export type RateLimitFields = { readonly policy: string; readonly state: string };

type Holder = { readonly client: string; readonly tenant: string };

type Admission = {
  /** Null where no limit applies. */
  readonly fields: RateLimitFields | null;
  readonly refusal: Refusal | null;
};

const UNLIMITED: Admission = { fields: null, refusal: null };
/** POST is a write but for the search. */
const READING_METHODS: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS"]);

/** Holds clients, tenants and addresses to the limits of the policy, each server by itself. */
export class CallerLimits {
  readonly #buckets = new Buckets();
  /** A table of its own, so that strangers at many addresses do not empty that of the callers. */
  readonly #addresses = new Buckets();
  readonly #metrics: LimitMetrics;

  readonly #pauseMs: number;

  /** @param pauseMs a refusal is kept back for one to two times as long */
  constructor(metrics: LimitMetrics, pauseMs = 100) {
    this.#metrics = metrics;
    this.#pauseMs = pauseMs;
  }

  /**
   * Kept for each refusal. A client that heeds Retry-After loses nothing by it. One that does not would
   * otherwise take as much of the service with refused requests as with others: each costs as much as a read.
   * Not the same time for each: 64 connections that were refused together would come back together, and with
   * bodies of 64 KiB that held up others for 18 ms of processor time; now for 4 ms.
   */
  pause(): Promise<void> {
    return Bun.sleep(this.#pauseMs * (1 + Math.random()));
  }

  /**
   * Draws a token from each bucket of the request, or from none where one of them is empty: a refused
   * request costs nothing, so a caller that asks again too early does not wait longer for it.
   *
   * @param nowMs of a clock that is never set
   */
  admit(limits: Limits, caller: Holder, method: string, route: string, nowMs: number): Admission {
    const isWrite = !READING_METHODS.has(method) && route !== "/customers/search";
    const drawn = limitsOf(limits, caller, isWrite).map((limit) => this.#draw(limit, nowMs));
    if (drawn.length === 0) return UNLIMITED;
    const violated = drawn.filter(({ waitMs }) => waitMs > 0);
    if (violated.length === 0)
      for (const { holder, fullAtMs } of drawn) this.#buckets.set(holder, fullAtMs, nowMs);
    else for (const { limit } of violated) this.#metrics.refused(limit);
    return { fields: fieldsOf(drawn, nowMs), refusal: violated.length === 0 ? null : refuseAll(violated) };
  }

  /** @returns the refusal in place of 401, or null while the address is within its quota */
  admitWrongToken(quota: Quota, address: string, nowMs: number): Refusal | null {
    const holder = limitHolderOf(address);
    const { fullAtMs, waitMs } = draw(this.#addresses.fullAtMs(holder) ?? 0, quota, nowMs);
    if (waitMs === 0) {
      this.#addresses.set(holder, fullAtMs, nowMs);
      return null;
    }
    this.#metrics.refused(WRONG_TOKENS_OF_ADDRESS);
    const { name } = WRONG_TOKENS_OF_ADDRESS;
    return refuse(
      "too-many-requests",
      `The token is unknown, revoked or expired, and the request exceeds the limit for ${exceeded(name, quota)}. Send a valid token, which this limit never refuses.`,
      { extensions: { violatedLimits: [name] }, headers: { "retry-after": `${secondsOf(waitMs)}` } },
    );
  }

  #draw(limit: Limit, nowMs: number): LimitDraw {
    // Names have no blanks.
    const holder = `${limit.name} ${limit.tenant} ${limit.client}`;
    const fullAtMs = this.#buckets.fullAtMs(holder);
    if (fullAtMs === undefined) this.#metrics.begin(limit);
    return { limit, holder, ...draw(fullAtMs ?? 0, limit.quota, nowMs) };
  }
}

type LimitDraw = Draw & { readonly limit: Limit; readonly holder: string };

/**
 * `q` / `w` is the rate, rounded down. `w` is the time in which an empty bucket fills, in whole seconds, since the
 * draft has no others, rounded up; `q` is as many as come in within it, which is more than the bucket holds where
 * it fills faster. `r` is what is left, and `t` the seconds until the bucket is full again, or until the next one
 * is there where none is left.
 */
function fieldsOf(drawn: readonly LimitDraw[], nowMs: number): RateLimitFields {
  return {
    policy: drawn.map(({ limit: { name, quota } }) => `"${name}";${windowOf(quota)}`).join(", "),
    state: drawn
      .map(({ limit: { name, quota }, remaining, fullAtMs }) => {
        const emptyMs = ((quota.burst - 1) * 1000) / quota.perSecond;
        const inMs = fullAtMs - nowMs - (remaining === 0 ? emptyMs : 0);
        return `"${name}";r=${remaining};t=${secondsOf(inMs)}`;
      })
      .join(", "),
  };
}

/** Whole seconds, at least one, by which the time has passed. A millionth of one more is a rounding of the clock. */
function secondsOf(ms: number): number {
  return Math.max(1, Math.ceil(ms / 1000 - 1e-6));
}

function windowOf({ burst, perSecond }: Quota): string {
  const seconds = secondsOf((burst / perSecond) * 1000);
  return `q=${Math.floor(seconds * perSecond + 1e-6)};w=${seconds}`;
}

const WHAT: Readonly<Record<LimitName, string>> = {
  "client-requests": "requests of this client",
  "client-writes": "writes of this client",
  "tenant-requests": "requests of this tenant",
  "tenant-writes": "writes of this tenant",
  "wrong-tokens": "wrong tokens from this address",
};

function exceeded(name: LimitName, { perSecond, burst }: Quota): string {
  return `${WHAT[name]} (${perSecond} a second, ${burst} at once)`;
}

function refuseAll(violated: readonly LimitDraw[]): Refusal {
  const seconds = Math.max(...violated.map(({ waitMs }) => secondsOf(waitMs)));
  const limits = violated.map(({ limit: { name, quota } }) => exceeded(name, quota)).join(" and for ");
  return refuse(
    "too-many-requests",
    `The request exceeds the limit for ${limits}. Send it again after ${seconds} s.`,
    {
      extensions: { violatedLimits: violated.map(({ limit }) => limit.name) },
      headers: { "retry-after": `${seconds}` },
    },
  );
}
