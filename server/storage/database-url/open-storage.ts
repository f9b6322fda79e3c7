import { existsSync } from "node:fs";
import { isPostgresUrl, parsePostgresUrl } from "../postgres/connection/postgres-url.ts";
import { hasPostgresSchema } from "../postgres/postgres-check.ts";
import { PostgresStorage } from "../postgres/postgres-storage.ts";
import { looseModes } from "../sqlite/files/sqlite-database.ts";
import { DEFAULT_PATH, MEMORY, parseSqliteUrl, sqlitePath } from "../sqlite/files/sqlite-url.ts";
import { SqliteStorage } from "../sqlite/sqlite-storage.ts";
import type { Storage, StorageOptions } from "../storage.ts";

/**
 * Opens the database that the URL names. A new one is created.
 *
 * @throws CommandRefused with a sentence that says why and what to do next
 */
export async function openStorage(databaseUrl: string, options: StorageOptions = {}): Promise<Storage> {
  if (isPostgresUrl(databaseUrl)) return await PostgresStorage.open(databaseUrl, options);
  const path = sqlitePath(databaseUrl);
  const storage = SqliteStorage.open(path, options);
  for (const sentence of looseModes(path)) options.onFault?.(sentence);
  await storage.ready;
  return storage;
}

/**
 * @returns whether there is a file of that name, or a database with our tables on that server
 * @throws CommandRefused when the URL names no database, or its server does not answer
 */
export async function databaseExists(databaseUrl: string, options: StorageOptions = {}): Promise<boolean> {
  if (isPostgresUrl(databaseUrl)) return await hasPostgresSchema(databaseUrl, options);
  return existsSync(sqlitePath(databaseUrl));
}

export const DEFAULT_DATABASE_URL = `sqlite:${DEFAULT_PATH}`;
/** A database in memory, which is gone when the service ends. */
export const MEMORY_URL = `sqlite:${MEMORY}`;

export function isInMemory(databaseUrl: string): boolean {
  return parseSqliteUrl(databaseUrl) === MEMORY;
}

const SHAPE = `must be sqlite:FILE, such as ${DEFAULT_DATABASE_URL}, ${MEMORY_URL}, or postgres://USER@HOST:PORT/DATABASE`;

/** @returns why the URL names no database, to complete the sentence "DATABASE_URL …"; null where it names one */
export function databaseUrlFault(databaseUrl: string): string | null {
  if (!isPostgresUrl(databaseUrl)) return parseSqliteUrl(databaseUrl) === null ? SHAPE : null;
  const parsed = parsePostgresUrl(databaseUrl);
  return parsed.ok ? null : parsed.fault;
}
