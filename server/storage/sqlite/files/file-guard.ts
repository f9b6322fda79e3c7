import { constants, type Database } from "bun:sqlite";
import { type Stats, statSync } from "node:fs";
import { StoreUnavailable } from "../../customer-store.ts";
import { LOG_BYTES_MAX } from "./sqlite-database.ts";
import { MEMORY } from "./sqlite-url.ts";

/** Which file a path led to. */
type FileIdentity = { readonly dev: number; readonly ino: number };
/** The files that were opened: a connection that is opened later must find the same ones. */
export type DatabaseIdentity = { readonly database: FileIdentity; readonly log: FileIdentity };

/**
 * Watches the files under one connection. What is written while the database was moved, replaced or
 * cut off, or while its write-ahead log was deleted, would be acknowledged and gone at the next start.
 *
 * Two calls of stat before each commit (9 µs each where they are slow,
 * against 300 µs and more for its fsync): a watcher would report too late.
 */
export class FileGuard {
  readonly #db: Database;
  readonly #path: string;
  readonly #opened: DatabaseIdentity | null;
  #databaseBytes = 0;
  #logBytes = 0;

  /**
   * @param opened what the first connection found; null for that one itself
   * @throws StoreUnavailable when this connection is on other files
   */
  constructor(db: Database, opened: DatabaseIdentity | null = null) {
    this.#db = db;
    this.#path = db.filename;
    this.#opened = this.#path === MEMORY ? null : (opened ?? this.#find());
    if (this.#opened === null) return;
    this.require();
    // A connection that was opened by path while another file was there is on that one, and stays there.
    if (hasMoved(db)) throw beingReplaced(this.#path);
  }

  /** What this connection's files were when it was opened; null in memory. */
  get identity(): DatabaseIdentity | null {
    return this.#opened;
  }

  /** @throws StoreUnavailable while the files are not those that were opened, or not whole */
  require(): void {
    if (this.#opened === null) return;
    const files = look(this.#path);
    const gone = goneFault(this.#path, this.#opened, files);
    if (gone !== null) {
      this.#foldIn();
      throw new StoreUnavailable(gone);
    }
    this.#requireWhole(files.database?.size ?? 0, files.log?.size ?? 0);
  }

  /**
   * Before the connection is closed: SQLite would leave the
   * log of a database that was replaced to the other file.
   */
  leave(): void {
    try {
      this.require();
    } catch {
      // The store closes, so there is no caller to report to; what could be saved was.
    }
  }

  #requireWhole(databaseBytes: number, logBytes: number): void {
    const advice = "Stop the service and use `restore FILE --force`.";
    if (databaseBytes < this.#databaseBytes) {
      throw new StoreUnavailable(`${this.#path} was cut off. ${advice}`);
    }
    // The log shrinks by itself, but not below its limit; where
    // it is shorter, SQLite is asked how long it must be.
    const isShort = logBytes === 0 || logBytes < Math.min(this.#logBytes, LOG_BYTES_MAX);
    if (isShort && logBytes < this.#logBytesNeeded()) {
      throw new StoreUnavailable(`${this.#path}-wal was cut off. ${advice}`);
    }
    this.#databaseBytes = databaseBytes;
    this.#logBytes = logBytes;
  }

  /**
   * Brings what the log holds into the database, wherever that has gone: this
   * connection still has both open. So a deleted log loses nothing, and a log
   * that stays behind is empty and cannot be played into another database.
   */
  #foldIn(): void {
    try {
      this.#db.run("PRAGMA wal_checkpoint(TRUNCATE)");
    } catch {
      // A damaged or unreachable file: what brought us here is reported.
    }
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
    const { database, log } = look(this.#path);
    if (database === null || log === null) throw beingReplaced(this.#path);
    return { database: identityOf(database), log: identityOf(log) };
  }
}

/**
 * To be asked before a further connection is opened: one to
 * another file would play the log of this one into it.
 *
 * @throws StoreUnavailable while the files of the path are not those that were opened
 */
export function requireFiles(path: string, opened: DatabaseIdentity): void {
  const fault = goneFault(path, opened, look(path));
  if (fault !== null) throw new StoreUnavailable(fault);
}

type Files = { readonly database: Stats | null; readonly log: Stats | null };

/** @returns what happened to the files, or null while they are those that were opened */
function goneFault(path: string, opened: DatabaseIdentity, { database, log }: Files): string | null {
  if (!isSame(database, opened.database)) {
    return `${path} is not the file that was opened. Put that file back, or stop the service and use \`restore FILE --force\`.`;
  }
  if (!isSame(log, opened.log)) {
    return `${path}-wal was deleted or replaced. Its writes were brought into ${path}; restart the service.`;
  }
  return null;
}

function look(path: string): Files {
  try {
    const options = { throwIfNoEntry: false } as const;
    return {
      database: statSync(path, options) ?? null,
      log: statSync(`${path}-wal`, options) ?? null,
    };
  } catch (error) {
    // A directory that may not be searched, a loop of links.
    throw new StoreUnavailable(`${path} cannot be looked at: ${(error as Error).message}.`, { cause: error });
  }
}

function identityOf({ dev, ino }: Stats): FileIdentity {
  return { dev, ino };
}

function isSame(found: Stats | null, opened: FileIdentity): boolean {
  return found !== null && found.ino === opened.ino && found.dev === opened.dev;
}

function beingReplaced(path: string): StoreUnavailable {
  return new StoreUnavailable(`${path} is being moved or replaced. Try again.`);
}

/** Whether the path of this connection leads to another file than the one that it has open. */
function hasMoved(db: Database): boolean {
  const answer = new Int32Array(2);
  db.fileControl(constants.SQLITE_FCNTL_HAS_MOVED, answer);
  return answer[0] === 1;
}
