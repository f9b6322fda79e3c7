import { UsageError } from "../outcome/failure.ts";

const TIMEOUT_MAX_MS = 24 * 3_600_000;

/** `30` and `30s` are seconds; `500ms` and `2m` too. Above 0, at most a day. @returns milliseconds. */
export function parseDurationMs(text: string): number {
  const match = /^(\d+(?:\.\d+)?)(ms|s|m)?$/.exec(text.trim());
  const unitMs = { ms: 1, s: 1000, m: 60_000 }[match?.[2] ?? "s"] ?? 1000;
  const ms = match === null ? Number.NaN : Number(match[1]) * unitMs;
  if (!(ms > 0 && ms <= TIMEOUT_MAX_MS)) {
    throw new UsageError(
      `"${text}" is not a time`,
      "Give seconds (30, 30s), milliseconds (500ms) or minutes (2m), at most a day.",
    );
  }
  return ms;
}
