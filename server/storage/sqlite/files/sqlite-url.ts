import { CommandRefused } from "../../../domain/command-refused.ts";

export const MEMORY = ":memory:";

/** The database when DATABASE_URL is not set. Its directory is created where it is missing. */
export const DEFAULT_PATH = "./data/customers.db";

/**
 * @returns FILE of `sqlite:FILE` or `sqlite://FILE`, which may be
 *   {@link MEMORY}; null when the text is not such a URL
 */
export function parseSqliteUrl(databaseUrl: string): string | null {
  const path = /^sqlite:(?:\/\/)?(.+)$/.exec(databaseUrl)?.[1];
  if (path === undefined || path.includes("?") || path.endsWith("/")) return null;
  return path === MEMORY || !path.startsWith(":") ? path : null;
}

/** @throws CommandRefused when the text is not a `sqlite:` URL */
export function sqlitePath(databaseUrl: string): string {
  const path = parseSqliteUrl(databaseUrl);
  if (path === null) throw new CommandRefused("DATABASE_URL names no database. Give sqlite:FILE.");
  return path;
}
