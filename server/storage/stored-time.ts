/** @param value of a column for a time: PostgreSQL's driver gives a bigint as text @returns ms since 1970 */
export function storedTime(value: number | string | null): number | null {
  return value === null ? null : Number(value);
}
