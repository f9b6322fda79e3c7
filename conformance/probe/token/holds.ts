import type { Seen } from "../../http/wire.ts";

/** Shorter values turn up by chance. */
const CHARACTERS_MIN = 4;

/** Whether an answer holds a value anywhere, body or headers, as it is or as JSON writes it. */
export function holds(seen: Seen, value: unknown): boolean {
  if (typeof value !== "string" || value.length < CHARACTERS_MIN) return false;
  const hay = [seen.text, ...seen.headers.map(([, header]) => header)].join("\n").toLowerCase();
  return [value, JSON.stringify(value).slice(1, -1), encodeURIComponent(value)].some((form) =>
    hay.includes(form.toLowerCase()),
  );
}
