/** RFC 3339 in UTC, to the millisecond. @param ms since 1970 */
export function isoTime(ms: number): string;
export function isoTime(ms: number | null): string | null;
export function isoTime(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString();
}

export const DAY_MS = 86_400_000;

/** The day of a time in UTC, such as 2026-11-28. @param ms since 1970 */
export function dayOf(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10);
}
