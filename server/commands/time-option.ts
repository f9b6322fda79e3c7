import { CommandRefused } from "../domain/command-refused.ts";

const UNIT_MS = { m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 } as const;

const TIME = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d{1,3})?)?Z)?$/;

/**
 * Reads a day or a time in UTC, or how long ago it was, such as 90m, 12h, 3d or 2w.
 *
 * @returns ms since 1970; null where the option is left out
 * @throws CommandRefused
 */
export function timeOption(flag: string, text: string | undefined, nowMs: number): number | null {
  if (text === undefined) return null;
  const [, count = "", unit = ""] = /^(\d{1,6})([mhdw])$/.exec(text) ?? [];
  if (count !== "") return nowMs - Number(count) * UNIT_MS[unit as keyof typeof UNIT_MS];
  const timeMs = TIME.test(text) ? Date.parse(text) : Number.NaN;
  // Date.parse moves 2027-02-30 to the second of March.
  const isReal = !Number.isNaN(timeMs) && new Date(timeMs).toISOString().startsWith(text.slice(0, 10));
  if (isReal) return timeMs;
  throw new CommandRefused(
    `${flag} "${text}" must be a time in UTC such as 2027-01-31 or 2027-01-31T10:00Z, or so long ago as in 90m, 12h, 3d or 2w.`,
  );
}
