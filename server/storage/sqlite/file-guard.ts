import { constants, type Database } from "bun:sqlite";
import { type Stats, statSync } from "node:fs";
import { StoreUnavailable } from "../customer-store.ts";
import { LOG_BYTES_MAX } from "./sqlite-database.ts";
import { MEMORY } from "./sqlite-url.ts";

/** Which file a path led to. */
export type FileIdentity = { readonly dev: number; readonly ino: number };
/** The files that were opened: a connection that is opened later must find the same ones. */
export type DatabaseIdentity = { readonly database: FileIdentity; readonly log: FileIdentity };

/**
 * Watches the files under one connection. What is written while the database was moved, replaced or cut off, or while
 * its write-ahead log was deleted, would be acknowledged and gone at the next start.
 *
 * Two calls of stat before each commit (9 µs each where they are slow, against 300 µs and more for its fsync): a
 * watcher would report too late.
 */
export class FileGuard {
  readonly #db: Database;
  readonly #path: string;
  readonly #opened: DatabaseIdentity | null;
  #databaseBytes = 0;
  #logBytes = 0;

  /** @param opened what an earlier connection found; null for the first one. A database in memory has no files. */
  constructor(db: Database, opened: DatabaseIdentity | null = null) {
    this.#db = db;
    this.#path = db.filename;
    this.#opened = this.#path === MEMORY ? null : (opened ?? this.#find());
    // A connection that was opened by path after the file was replaced is on the wrong one, and stays there.
    if (this.#opened !== null && hasMoved(db)) throw this.#fault(`${this.#path} is being moved or replaced`);
  }

  /** What this connection's files were when it was opened; null in memory. */
  get identity(): DatabaseIdentity | null {
    return this.#opened;
  }

  /** @throws StoreUnavailable while the files are not those that were opened */
  require(): void {
    if (this.#opened === null) return;
    const fault = this.#faultNow(this.#opened);
    if (fault === null) return;
    this.foldIn();
    throw this.#fault(fault);
  }

  /**
   * Brings what the log holds into the database, wherever that has gone: this connection still has both open. So a
   * deleted log loses nothing, and a log that stays behind is empty and cannot be played into another database.
   */
  foldIn(): void {
    try {
      this.#db.run("PRAGMA wal_checkpoint(TRUNCATE)");
    } catch {
      // A damaged or unreachable file: what brought us here is reported.
    }
  }

  #faultNow({ database, log }: DatabaseIdentity): string | null {
    const path = this.#path;
    const logPath = `${path}-wal`;
    const [databaseNow, logNow] = [look(path), look(logPath)];
    if (databaseNow === null || !isSame(databaseNow, database)) {
      return `${path} is not the file that was opened. Put that file back, or stop the service and use \`restore FILE --force\``;
    }
    if (databaseNow.size < this.#databaseBytes) {
      return `${path} was cut off. Stop the service and use \`restore FILE --force\``;
    }
    if (logNow === null || !isSame(logNow, log)) {
      return `${logPath} was deleted or replaced. Its writes were brought into ${path}; restart the service`;
    }
    // The log shrinks by itself, but not below its limit.
    if (logNow.size < Math.min(this.#logBytes, LOG_BYTES_MAX) && logNow.size < this.#logBytesNeeded()) {
      return `${logPath} was cut off. Stop the service and use \`restore FILE --force\``;
    }
    this.#databaseBytes = databaseNow.size;
    this.#logBytes = logNow.size;
    return null;
  }

  /** How long the log is by SQLite's own account. */
  #logBytesNeeded(): number {
    const frames = this.#db.query<{ log: number }, []>("PRAGMA wal_checkpoint(NOOP)").get()?.log ?? 0;
    const page = this.#db.query<{ page_size: number }, []>("PRAGMA page_size").get()?.page_size ?? 0;
    return frames <= 0 ? 0 : 32 + frames * (24 + page);
  }

  #find(): DatabaseIdentity {
    // The first read of a connection makes the log.
    this.#db.query("PRAGMA user_version").get();
    const [database, log] = [look(this.#path), look(`${this.#path}-wal`)];
    if (database === null || log === null) throw this.#fault(`${this.#path} is being moved or replaced`);
    return { database: identityOf(database), log: identityOf(log) };
  }

  #fault(what: string): StoreUnavailable {
    return new StoreUnavailable(`${what}.`);
  }
}

function look(path: string): Stats | null {
  try {
    return statSync(path, { throwIfNoEntry: false }) ?? null;
  } catch (error) {
    // A directory that may not be searched, a loop of links.
    throw new StoreUnavailable(`${path} cannot be looked at: ${(error as Error).message}.`, { cause: error });
  }
}

function identityOf({ dev, ino }: Stats): FileIdentity {
  return { dev, ino };
}

function isSame(found: Stats, opened: FileIdentity): boolean {
  return found.ino === opened.ino && found.dev === opened.dev;
}

/** Whether the path of this connection leads to another file than the one that it has open. */
function hasMoved(db: Database): boolean {
  const answer = new Int32Array(2);
  db.fileControl(constants.SQLITE_FCNTL_HAS_MOVED, answer);
  return answer[0] === 1;
}
