/** A rate: average requests per second, and the burst allowed after a pause. */
export type Quota = { readonly perSecond: number; readonly burst: number };

export type Draw = {
  /** When the bucket is full again: all that is kept of it. */
  readonly fullAtMs: number;
  /** How many more can be drawn at once. */
  readonly remaining: number;
  /** In how many ms the next one can be drawn, where none was; 0 where one was. */
  readonly waitMs: number;
};

/** Divisions leave a little too much or too little of a token. */
const ROUNDING = 1e-6;

/**
 * Draws one token from a bucket (the generic cell rate algorithm). A bucket is one number, the time at which
 * it is full again, so one that is full needs none. A longer time than the quota allows, from before a quota
 * was raised or a clock was set back, counts as an empty bucket.
 *
 * A library was looked at: rate-limiter-flexible counts in fixed windows, which let twice the quota pass at
 * their edge, and answers by promises and timers.
 *
 * @param fullAtMs of the draw before; 0 for a bucket that was never drawn from
 */
export function draw(fullAtMs: number, { perSecond, burst }: Quota, nowMs: number): Draw {
  const tokenMs = 1000 / perSecond;
  const missing = Math.min(Math.max(0, (fullAtMs - nowMs) / tokenMs), burst);
  const left = burst - missing - 1;
  if (left < -ROUNDING) return { fullAtMs: nowMs + missing * tokenMs, remaining: 0, waitMs: -left * tokenMs };
  return { fullAtMs: nowMs + (missing + 1) * tokenMs, remaining: Math.floor(left + ROUNDING), waitMs: 0 };
}
