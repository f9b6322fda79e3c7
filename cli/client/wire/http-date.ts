/** Without the name of a time zone, Date.parse would take it for local time. */
const ASCTIME = /^[a-z]{3} [a-z]{3} [ \d]\d \d\d:\d\d:\d\d \d{4}$/i;

/**
 * A date of HTTP in any of its three forms, which are all UTC (RFC 9110 §5.6.7), in ms since 1970. Undefined where
 * absent or malformed.
 */
export function httpDateMs(header: string | undefined): number | undefined {
  const text = header?.trim() ?? "";
  // All three forms begin with the name of a day; Date.parse alone would take "1.5" for a date.
  if (!/^[a-z]{3}/i.test(text)) return undefined;
  const dateMs = Date.parse(ASCTIME.test(text) ? `${text} GMT` : text);
  return Number.isNaN(dateMs) ? undefined : dateMs;
}
