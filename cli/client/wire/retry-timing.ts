/** How long to wait before the next request: pure, so that its laws can be tested. */
import { httpDateMs } from "./http-date.ts";

export const BACK_OFF_FIRST_MS = 50;
export const BACK_OFF_MAX_MS = 2000;

/** Sendings of a write in a row that found no connection: then it is soon hopeless. */
export const NOT_SENT_MAX = 3;

/**
 * Full jitter: anything from 0 to a bound that doubles with every attempt. Writers that met once would meet
 * again after equal waits.
 * @param attempt 1 after the first failure. @param chance from 0 to below 1.
 */
export function backOffMs(attempt: number, chance: number = Math.random()): number {
  return chance * Math.min(BACK_OFF_MAX_MS, BACK_OFF_FIRST_MS * 2 ** (attempt - 1));
}

/**
 * Retry-After (RFC 9110 §10.2.3): whole seconds or an HTTP date. Undefined where absent or malformed.
 * @param nowMs the clock that the date is compared with: the reply's own Date where it has one, so that a
 * wrong clock here does not matter.
 */
export function retryAfterMs(header: string | undefined, nowMs: number): number | undefined {
  const text = header?.trim() ?? "";
  if (/^\d+$/.test(text)) return Number(text) * 1000;
  const dateMs = httpDateMs(text);
  return dateMs === undefined ? undefined : Math.max(0, dateMs - nowMs);
}
