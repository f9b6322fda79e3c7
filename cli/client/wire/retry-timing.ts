/** How long to wait before the next request: pure, so that its laws can be tested. */

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
  // All three forms of an HTTP date begin with the name of a day; Date.parse alone would take "1.5" for a
  // date.
  if (!/^[a-z]{3}/i.test(text)) return undefined;
  const date = Date.parse(text);
  return Number.isNaN(date) ? undefined : Math.max(0, date - nowMs);
}
