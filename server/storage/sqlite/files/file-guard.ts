import { constants, type Database } from "bun:sqlite";
import { openSync, readSync, type Stats, statSync } from "node:fs";
import { StoreUnavailable } from "../../customers/customer-store.ts";
import { namelessLook, saveAtOnce, saveCopy } from "./nameless-file.ts";
import { savedCopyOf } from "./saved-copy.ts";
import { LOG_BYTES_MAX } from "./sqlite-database.ts";
import { MEMORY } from "./sqlite-url.ts";

/** Which file a path led to. */
type FileIdentity = { readonly dev: number; readonly ino: number };
/** The files that were opened: a connection that is opened later must find the same ones. */
export type DatabaseIdentity = {
  readonly database: FileIdentity;
  /** `-wal`, the write-ahead log. */
  readonly log: FileIdentity;
  /** `-shm`, the wal-index: it holds the locks, and what the log has of each page. */
  readonly index: FileIdentity;
};

/**
 * Makes every later access to the database's file fail (sqlite.org/c3ref/c_fcntl_begin_atomic_write.html).
 * `bun:sqlite` has no name for it.
 */
const SQLITE_FCNTL_NULL_IO = 43;
const ADVICE = "Stop the service and run `check`; if it finds damage, `restore FILE --force`.";

/**
 * Watches the files under one connection. A write that is committed while one of them
 * was moved, replaced, deleted or truncated would be acknowledged and lost at the next start.
 *
 * Three calls of stat before each commit and three after it: 13 µs of the 38 that a lone write takes without
 * its fsync, and 2 % of one with it. The look before keeps a commit from overwriting what others wrote under
 * another wal-index, the look after keeps one from being acknowledged. A watcher would report too late.
 */
export class FileGuard {
  readonly #db: Database;
  readonly #path: string;
  readonly #opened: DatabaseIdentity | null;
  #databaseBytes = 0;
  #logBytes = 0;
  #headerDescriptor: number | null = null;
  readonly #isNameless: () => boolean;

  /**
   * @param opened what the first connection found; null for that one itself
   * @throws StoreUnavailable when this connection is on other files
   */
  constructor(db: Database, opened: DatabaseIdentity | null = null) {
    this.#db = db;
    this.#path = db.filename;
    const files = this.#path === MEMORY ? null : (opened ?? this.#find());
    this.#opened = files;
    this.#isNameless = namelessLook((file) => files !== null && isSame(file, files.database));
    if (files === null) return;
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
    this.#refuseChanged(this.#opened, files);
    this.#requireWhole(files.database?.size ?? 0, files.log?.size ?? 0);
  }

  /**
   * For reads. Files that cannot be looked at lead no other process to other ones either.
   *
   * @throws StoreUnavailable while another process may be on other files: what it
   *   commits there, such as the end of a token, would not be seen here
   */
  requireSame(): void {
    if (this.#opened === null) return;
    let files: Files;
    try {
      files = look(this.#path);
    } catch {
      return;
    }
    this.#refuseChanged(this.#opened, files);
  }

  /**
   * To be called before the connection is closed.
   *
   * SQLite would leave the log of a database that was replaced to the other file. And when the last
   * connection is closed, SQLite moves the log into the database and deletes it. By a wal-index that other
   * processes no longer share that would destroy their writes, so then the log stays for the next start.
   */
  leave(): void {
    if (this.#opened === null) return;
    saveAtOnce(this.#path);
    try {
      this.require();
    } catch {
      // The store closes, so there is no caller to report to; what could be saved was.
    }
    try {
      const files = look(this.#path);
      if (changedFile(this.#opened, files) === null || isLogOurs(this.#opened, files)) return;
      this.#db.fileControl(SQLITE_FCNTL_NULL_IO, null);
    } catch {
      // Files that cannot be looked at: SQLite takes them for moved, and leaves the log as it is.
    }
  }

  #refuseChanged(opened: DatabaseIdentity, files: Files): void {
    const changed = changedFile(opened, files);
    if (changed === null) return;
    const isOurs = isLogOurs(opened, files);
    const saving = isOurs && changed === "database" && this.#isNameless() ? this.#save() : null;
    const isFoldedIn = isOurs && this.#foldIn();
    throw new StoreUnavailable(saving ?? changeSentence(this.#path, changed, isFoldedIn));
  }

  /**
   * What a file without a name holds is gone with this process, so all of it is saved. Its log is brought into it
   * all the same: without that file it is worth nothing, and would be played into another one.
   *
   * @returns what happened, and what to do
   */
  #save(): string {
    const [path, saved] = [this.#path, savedCopyOf(this.#path)];
    const fault = saveCopy(this.#db, path);
    return fault === null
      ? `${path} was deleted or replaced. All that it held is in ${saved}: stop every service, run \`restore ${saved} --force\`, and remove that file.`
      : `${path} was deleted or replaced, and what it held can't be saved to ${saved}: ${fault}. Correct that before you stop the service: nothing else has it.`;
  }

  #requireWhole(databaseBytes: number, logBytes: number): void {
    // A database shrinks by VACUUM as well.
    if (databaseBytes < this.#databaseBytes && databaseBytes < this.#databaseBytesNeeded()) {
      throw new StoreUnavailable(`${this.#path} was truncated. ${ADVICE}`);
    }
    // The log shrinks by itself, but not below its limit; where
    // it is shorter, SQLite is asked how long it must be.
    const isShort = logBytes === 0 || logBytes < Math.min(this.#logBytes, LOG_BYTES_MAX);
    if (isShort && logBytes < this.#logBytesNeeded()) {
      throw new StoreUnavailable(`${this.#path}-wal was truncated. ${ADVICE}`);
    }
    this.#databaseBytes = databaseBytes;
    this.#logBytes = logBytes;
  }

  /**
   * Brings what the log holds into the database, wherever that has gone: this
   * connection still has both open. So a deleted log loses nothing, and a log
   * that stays behind is empty and cannot be played into another database.
   *
   * @returns whether all of it is in the database
   */
  #foldIn(): boolean {
    try {
      const done = this.#db.query<{ busy: number }, []>("PRAGMA wal_checkpoint(TRUNCATE)").get();
      return done?.busy === 0;
    } catch {
      // A damaged or unreachable file: what brought us here is reported.
      return false;
    }
  }

  /**
   * How long the database must be by its own header (sqlite.org/fileformat.html, section 1.3).
   * `PRAGMA page_count` also counts the pages that so far only the log has.
   */
  #databaseBytesNeeded(): number {
    const header = new DataView(new ArrayBuffer(32));
    try {
      // Never closed: that would drop the locks that SQLite holds on the file for this process.
      this.#headerDescriptor ??= openSync(this.#path, "r");
      if (readSync(this.#headerDescriptor, header, 0, 32, 0) < 32) return Number.POSITIVE_INFINITY;
    } catch (error) {
      throw cannotBeLookedAt(this.#path, error);
    }
    const pageBytes = header.getUint16(16);
    return header.getUint32(28) * (pageBytes === 1 ? 65_536 : pageBytes);
  }

  /** How long the log is by SQLite's own account. */
  #logBytesNeeded(): number {
    const frames = this.#db.query<{ log: number }, []>("PRAGMA wal_checkpoint(NOOP)").get()?.log ?? 0;
    const page = this.#db.query<{ page_size: number }, []>("PRAGMA page_size").get()?.page_size ?? 0;
    return frames <= 0 ? 0 : 32 + frames * (24 + page);
  }

  #find(): DatabaseIdentity {
    // The first read of a connection makes the log and its index.
    this.#db.query("PRAGMA user_version").get();
    const { database, log, index } = look(this.#path);
    if (database === null || log === null || index === null) throw beingReplaced(this.#path);
    return { database: identityOf(database), log: identityOf(log), index: identityOf(index) };
  }
}

/**
 * To be asked before a further connection is opened: one to
 * another file would play the log of this one into it.
 *
 * @throws StoreUnavailable while the files of the path are not those that were opened
 */
export function requireFiles(path: string, opened: DatabaseIdentity): void {
  const changed = changedFile(opened, look(path));
  if (changed !== null) throw new StoreUnavailable(changeSentence(path, changed, false));
}

type FileKind = keyof DatabaseIdentity;
type Files = Readonly<Record<FileKind, Stats | null>>;

/** @returns the first file that is not the one that was opened, or null */
function changedFile(opened: DatabaseIdentity, files: Files): FileKind | null {
  if (!isSame(files.database, opened.database)) return "database";
  if (!isSame(files.log, opened.log)) return "log";
  return isSame(files.index, opened.index) ? null : "index";
}

/**
 * Whether this process may still move the log into the database. A process that opens the
 * database, or finds the log, beside another wal-index does not see our locks, nor we its writes.
 */
function isLogOurs(opened: DatabaseIdentity, files: Files): boolean {
  if (isSame(files.index, opened.index)) return true;
  const [isDatabaseSame, isLogSame] = [
    isSame(files.database, opened.database),
    isSame(files.log, opened.log),
  ];
  // Opening a database creates the index. Without one, no other process has opened it.
  return files.index === null ? !(isDatabaseSame && isLogSame) : !(isDatabaseSame || isLogSame);
}

function changeSentence(path: string, changed: FileKind, isFoldedIn: boolean): string {
  switch (changed) {
    case "database":
      return `${path} is not the file that was opened. Put that file back, or stop the service and run \`check\`; if it finds damage, \`restore FILE --force\`.`;
    case "log": {
      const next = isFoldedIn ? `Its writes were brought into ${path}; restart the service.` : ADVICE;
      return `${path}-wal was deleted or replaced. ${next}`;
    }
    case "index":
      return `${path}-shm was deleted or replaced. Restart the service.`;
  }
}

function look(path: string): Files {
  try {
    const options = { throwIfNoEntry: false } as const;
    return {
      database: statSync(path, options) ?? null,
      log: statSync(`${path}-wal`, options) ?? null,
      index: statSync(`${path}-shm`, options) ?? null,
    };
  } catch (error) {
    // A directory that may not be searched, a loop of links.
    throw cannotBeLookedAt(path, error);
  }
}

function cannotBeLookedAt(path: string, error: unknown): StoreUnavailable {
  return new StoreUnavailable(`${path} cannot be looked at: ${(error as Error).message}.`, { cause: error });
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
