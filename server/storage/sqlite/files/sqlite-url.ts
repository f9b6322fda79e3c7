import { CommandRefused } from "../../../domain/command-refused.ts";

export const MEMORY = ":memory:";

/** Where a service that was told nothing keeps its customers. Its directory is made. */
export const DEFAULT_PATH = "./data/customers.db";

/**
 * @returns the file of `sqlite:FILE` (also `sqlite://FILE`), {@link MEMORY}, or null for what is no such URL
 */
export function parseSqliteUrl(databaseUrl: string): string | null {
  const path = /^sqlite:(?:\/\/)?(.+)$/.exec(databaseUrl)?.[1];
  if (path === undefined || path.includes("?") || path.endsWith("/")) return null;
  return path === MEMORY || !path.startsWith(":") ? path : null;
}

/** @throws CommandRefused for what is no `sqlite:` URL */
export function sqlitePath(databaseUrl: string): string {
  const path = parseSqliteUrl(databaseUrl);
  if (path === null) throw new CommandRefused("DATABASE_URL names no database. Give sqlite:FILE.");
  return path;
}
