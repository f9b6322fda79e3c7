import { UsageError } from "../../outcome/failure.ts";

const DAY_MS = 24 * 3_600_000;
const KEPT_MAX_MS = 90 * DAY_MS;
const UNITS_MS: Record<string, number> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: DAY_MS };

/** `30` and `30s` are seconds; `500ms` and `2m` too. Above 0, at most a day. @returns milliseconds. */
export function parseDurationMs(text: string): number {
  const ms = /[hd]$/.test(text.trim()) ? undefined : durationMs(text, "s");
  if (ms === undefined || ms > DAY_MS) {
    throw new UsageError(
      `"${text}" is not a time`,
      "Give seconds (30, 30s), milliseconds (500ms) or minutes (2m), at most a day.",
    );
  }
  return ms;
}

/** How long changes are kept for undo: `7d`, `12h`, `30m`, at most 90 days; undefined for `off`. @returns milliseconds. */
export function parseUndoMs(text: string): number | undefined {
  if (text.trim() === "off") return undefined;
  const ms = durationMs(text, "");
  if (ms !== undefined && ms <= KEPT_MAX_MS) return ms;
  throw new UsageError(
    `"${text}" is not a time for which changes can be kept`,
    'Give days (7d), hours (12h) or minutes (30m), at most 90 days, or "off".',
  );
}

/** Undefined where it is no time above 0. @param unit of a bare number. */
function durationMs(text: string, unit: string): number | undefined {
  const [, count, given = unit] = /^(\d+(?:\.\d+)?)(ms|[smhd])?$/.exec(text.trim()) ?? [];
  const ms = Number(count) * (UNITS_MS[given] ?? Number.NaN);
  return ms > 0 ? ms : undefined;
}
