import { type CopyProgress, type CopyReport, copyRows } from "../copy/copy-rows.ts";
import type { CopySource, CopyTarget } from "../copy/copy-tables.ts";
import { isPostgresUrl } from "../postgres/connection/postgres-url.ts";
import { withPostgresSource, withPostgresTarget } from "../postgres/postgres-copy.ts";
import { sqlitePath } from "../sqlite/files/sqlite-url.ts";
import { withSqliteSource, withSqliteTarget } from "../sqlite/sqlite-copy.ts";
import type { StorageOptions } from "../storage.ts";

type CopyDatabaseOptions = StorageOptions & {
  readonly onProgress?: (progress: CopyProgress) => void;
  readonly pageRows?: number;
};

/**
 * Copies all of a database that no service has open into an empty one, whatever the engines. Stopped at
 * any moment, it resumes when it is called again.
 *
 * @throws CommandRefused with a sentence that says why and what to do; StoreUnavailable
 */
export async function copyDatabase(
  from: string,
  to: string,
  options: CopyDatabaseOptions = {},
): Promise<CopyReport> {
  return await withSource(from, options, (source) =>
    withTarget(to, source.identity, options, (target) => copyRows(source, target, options)),
  );
}

function withSource<T>(
  url: string,
  options: StorageOptions,
  work: (source: CopySource) => Promise<T>,
): Promise<T> {
  if (isPostgresUrl(url)) return withPostgresSource(url, options, work);
  return withSqliteSource(sqlitePath(url), options.lockWaitMs, work);
}

function withTarget<T>(
  url: string,
  identity: string,
  options: StorageOptions,
  work: (target: CopyTarget) => Promise<T>,
): Promise<T> {
  if (isPostgresUrl(url)) return withPostgresTarget(url, identity, options, work);
  return withSqliteTarget(sqlitePath(url), identity, options.lockWaitMs, work);
}
