import { Database, SQLiteError } from "bun:sqlite";
import { accessSync, constants, existsSync, mkdirSync, statSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { CommandRefused } from "../../../domain/command-refused.ts";
import { StoreUnavailable } from "../../customers/customer-store.ts";
import { LOCK_WAIT_MS } from "../../storage.ts";
import { refuseSavedCopy } from "./saved-copy.ts";
import { FIRST_SCHEMA_VERSION, SCHEMA_VERSION, schemaSteps } from "./schema.ts";
import { refuseLink, refuseSecondName } from "./second-name.ts";
import { DEFAULT_PATH, MEMORY } from "./sqlite-url.ts";
import { tokenFileOf } from "./token-file.ts";

/** Marks a file as a database of this service: "CUST" as a 32-bit integer (SQLite's application_id). */
const APPLICATION_ID = 0x43555354;

/** For commands and tests. */
const CACHE_KIB = 16_384;
/**
 * The write-ahead log is cut to this once all of it is in
 * the database: a long reader had left it at gigabytes.
 */
export const LOG_BYTES_MAX = 16 * 1024 * 1024;

type ConnectionOptions = { readonly cacheKib?: number; readonly lockWaitMs?: number };

/**
 * Opens the database, made (mode 0600, by the process's umask) where it is new. What is refused is
 * left as it was, byte for byte.
 *
 * @param path a file, or {@link MEMORY}
 * @throws CommandRefused when the file is not a database, belongs to another program or to a newer version
 */
export function openDatabase(
  path: string,
  { cacheKib = CACHE_KIB, lockWaitMs = LOCK_WAIT_MS }: ConnectionOptions = {},
): Database {
  return withReasons(path, () => {
    if (path !== MEMORY) {
      requireDirectory(path);
      refuseLink(path);
      refuseSecondName(path);
      refuseSavedCopy(path);
      refuseStartingOver(path);
    }
    if (existsSync(path)) accessSync(path, constants.W_OK);
    return opened(path, true, lockWaitMs, (db) => {
      refuseForeign(db, path);
      configure(db, path, { cacheKib, lockWaitMs });
      makeSchema(db, path);
    });
  });
}

/**
 * A directory that is missing is made in the default place alone: elsewhere its name may be a typing error.
 */
export function requireDirectory(path: string): void {
  const directory = dirname(path);
  if (existsSync(directory)) return;
  if (path !== DEFAULT_PATH) {
    throw new CommandRefused(
      `The directory ${resolve(missingPart(directory))} of the database ${path} does not exist. Create it, or correct DATABASE_URL.`,
    );
  }
  mkdirSync(directory, { recursive: true, mode: 0o700 });
}

/** @returns the directory up to the `..` that leads out of a missing one: the system resolves no such path */
function missingPart(directory: string): string {
  const names = directory.split("/");
  const leaving = names.findIndex(
    (name, at) => name === ".." && !existsSync(names.slice(0, at).join("/") || "."),
  );
  return leaving === -1 ? directory : names.slice(0, leaving).join("/");
}

/** A database that was emptied or removed, while other files show that there was one, must not begin anew. */
function refuseStartingOver(path: string): void {
  const isNew = (): boolean => sizeOf(path) === 0;
  const [log, tokenFile] = [`${path}-wal`, tokenFileOf(path)];
  if (!isNew()) return;
  const rest = sizeOf(log) > 0 ? log : existsSync(tokenFile) ? tokenFile : null;
  // Once more: another service may have made it meanwhile.
  if (rest === null || !isNew()) return;
  throw startingOver(path, "is missing or empty", rest);
}

function startingOver(path: string, is: string, rest: string): CommandRefused {
  return new CommandRefused(
    `${path} ${is}, but ${rest} is left of an earlier database. Restore a backup with \`restore FILE --force\`; to begin anew, remove ${rest} first.`,
  );
}

function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}

/** Opens a database that exists, of this version or an earlier one; for commands that look at one. */
export function openExistingDatabase(path: string, lockWaitMs = LOCK_WAIT_MS): Database {
  if (!existsSync(path)) throw new CommandRefused(`${path} does not exist. Name a database that does.`);
  return withReasons(path, () =>
    opened(path, false, lockWaitMs, (db) => {
      if (!isOurs(db)) throw new CommandRefused(`${path} is not a database of this service.`);
      refuseForeign(db, path);
    }),
  );
}

/** One more connection to a database that {@link openDatabase} has opened, with the same settings. */
export function connect(
  path: string,
  { cacheKib = CACHE_KIB, lockWaitMs = LOCK_WAIT_MS }: ConnectionOptions = {},
): Database {
  return withReasons(path, () =>
    opened(path, false, lockWaitMs, (db) => configure(db, path, { cacheKib, lockWaitMs })),
  );
}

function opened(
  path: string,
  create: boolean,
  lockWaitMs: number,
  prepare: (db: Database) => void,
): Database {
  const db = new Database(path, { readwrite: true, create, strict: true });
  try {
    // First of all: without it a second process fails at journal_mode.
    db.run(`PRAGMA busy_timeout = ${lockWaitMs}`);
    prepare(db);
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
}

function configure(db: Database, path: string, { cacheKib, lockWaitMs }: Required<ConnectionOptions>): void {
  const mode = writeAheadMode(db, lockWaitMs);
  if (mode !== "wal" && path !== MEMORY) {
    throw new CommandRefused(
      `${path} can't have a write-ahead log (its journal mode stays ${mode}). Put it on a local file system.`,
    );
  }
  // An acknowledged write survives a power cut; NORMAL would lose the last commits.
  db.run("PRAGMA synchronous = FULL");
  db.run("PRAGMA foreign_keys = ON");
  db.run(`PRAGMA cache_size = -${cacheKib}`);
  db.run(`PRAGMA journal_size_limit = ${LOG_BYTES_MAX}`);
  db.run("PRAGMA trusted_schema = OFF");
  // What is deleted or replaced is overwritten, so that no value of an erased customer stays in the file.
  db.run("PRAGMA secure_delete = ON");
  // What a savepoint would restore stays in memory. In a file, a batch of writes failed where no descriptor was left.
  db.run("PRAGMA temp_store = MEMORY");
}

/**
 * Of several that switch a new file at the same moment,
 * SQLite refuses some at once instead of letting them wait.
 */
function writeAheadMode(db: Database, lockWaitMs: number): string | undefined {
  const until = performance.now() + lockWaitMs;
  for (;;) {
    try {
      return db.query<{ journal_mode: string }, []>("PRAGMA journal_mode = WAL").get()?.journal_mode;
    } catch (error) {
      if (!isBusy(error) || performance.now() > until) throw error;
      Bun.sleepSync(5);
    }
  }
}

export function schemaVersion(db: Database): number {
  return pragma(db, "user_version");
}

/** Gives a new database its schema, or carries one of an earlier version over, in one transaction. */
function makeSchema(db: Database, path: string): void {
  // Having nothing to do is the rule, and must not need the write lock or a disk with space.
  if (isUpToDate(db)) return;
  db.transaction(() => {
    // Again, now that no other process can come in between.
    refuseForeign(db, path);
    if (isUpToDate(db)) return;
    const isNew = !isOurs(db);
    // A file that was copied without its log, or whose log was truncated, is not empty but may have no table.
    if (isNew && path !== MEMORY && existsSync(tokenFileOf(path)))
      throw startingOver(path, "has no tables", tokenFileOf(path));
    for (const step of schemaSteps(isNew ? null : schemaVersion(db))) db.run(step);
    db.run(`PRAGMA user_version = ${SCHEMA_VERSION}`);
    db.run(`PRAGMA application_id = ${APPLICATION_ID}`);
  }).immediate();
}

function refuseForeign(db: Database, path: string): void {
  // One look at all three: another service may make the schema between two of them.
  const { version, isBlank, ours } = db.transaction(() => ({
    version: schemaVersion(db),
    isBlank: db.query("SELECT 1 FROM sqlite_schema LIMIT 1").get() === null,
    ours: isOurs(db),
  }))();
  if (!ours && !(isBlank && version === 0)) {
    throw new CommandRefused(`${path} is the database of another program. Name another file.`);
  }
  if (version > SCHEMA_VERSION) {
    throw new CommandRefused(
      `${path} was written by a newer version (schema ${version}; this one knows ${SCHEMA_VERSION}). Start that version, or restore a backup from before it.`,
    );
  }
  if (ours && version < FIRST_SCHEMA_VERSION) {
    throw new CommandRefused(
      `${path} was written by a version that was never released (schema ${version}; this one knows ${SCHEMA_VERSION}). Name another file.`,
    );
  }
}

function isUpToDate(db: Database): boolean {
  return isOurs(db) && schemaVersion(db) === SCHEMA_VERSION;
}

/** @throws CommandRefused for a database of an earlier version, which {@link openDatabase} carries over */
export function requireThisSchema(db: Database): void {
  const version = schemaVersion(db);
  if (version === SCHEMA_VERSION) return;
  throw new CommandRefused(
    `${db.filename} was written by an earlier version (schema ${version}; this one needs ${SCHEMA_VERSION}). Start this version's service on it once, which carries it over.`,
  );
}

function isOurs(db: Database): boolean {
  return pragma(db, "application_id") === APPLICATION_ID;
}

function pragma(db: Database, name: string): number {
  const row = db.query<Record<string, number>, []>(`PRAGMA ${name}`).get();
  return row?.[name] ?? 0;
}

/**
 * Runs a step of opening the database.
 *
 * @throws CommandRefused with the reason in a sentence, for a fault of SQLite or of the system
 */
export function withReasons<T>(path: string, open: () => T): T {
  try {
    return open();
  } catch (error) {
    if (!(error instanceof Error) || !("code" in error)) throw error;
    const why =
      error instanceof SQLiteError
        ? reason(error)
        : (SYSTEM_REASONS[String(error.code)] ?? `${error.message}.`);
    throw new CommandRefused(`${path} can't be opened: ${why}`, { cause: error });
  }
}

const SYSTEM_REASONS: Readonly<Record<string, string>> = {
  EROFS: "its file system is read-only. Mount it for writing, or name another file.",
  EACCES: "this user may not write it. Change its owner or mode, or start the service as its owner.",
  ENOSPC: "the disk is full.",
};

function reason(error: SQLiteError): string {
  const code = error.code ?? "";
  if (code.startsWith("SQLITE_CANTOPEN")) return "it or its directory is missing, or may not be written.";
  if (code.startsWith("SQLITE_NOTADB")) return "it is not a SQLite database. Name another file.";
  if (isDamage(code))
    return "SQLite finds it damaged. Run `check`; if it finds damage, `restore FILE --force`.";
  if (code.startsWith("SQLITE_BUSY")) return "another process holds its lock.";
  if (code.startsWith("SQLITE_FULL")) return "the disk is full.";
  if (code.startsWith("SQLITE_IOERR")) return `the disk is full or fails (${code}).`;
  if (code.startsWith("SQLITE_READONLY")) return "it or its directory may not be written.";
  return `${error.message} (${code}).`;
}

/**
 * A newer version may migrate the database under a running service, whose
 * statements would then fail, or write rows that lack a column's value.
 *
 * @returns a check to run inside a transaction; it throws
 *   StoreUnavailable while the schema is not this version's
 */
export function schemaGuard(db: Database): () => void {
  // From the cache, which is cleared when the connection closes: a statement that
  // is never finalized keeps the connection open, and leaves -wal and -shm behind.
  const statement = db.query<{ user_version: number }, []>("PRAGMA user_version");
  return () => {
    const version = statement.get()?.user_version;
    if (version === SCHEMA_VERSION) return;
    throw new StoreUnavailable(
      `${db.filename} was migrated by a newer version (schema ${version}; this one knows ${SCHEMA_VERSION}). Restart with that version.`,
    );
  };
}

/** @returns a sentence for each file of the database that others than its owner may read or write */
export function looseModes(path: string): string[] {
  if (path === MEMORY) return [];
  return [path, `${path}-wal`, `${path}-shm`, tokenFileOf(path)].flatMap((file) => {
    const mode = statSync(file, { throwIfNoEntry: false })?.mode ?? 0;
    if ((mode & 0o077) === 0) return [];
    const shown = (mode & 0o777).toString(8).padStart(4, "0");
    return [`${file} may be read by others (mode ${shown}). Run \`chmod 600 ${file}\`.`];
  });
}

/**
 * Gives up the pages in memory: those of a file that was
 * bad for a while would go on being answered from there.
 */
export function forgetPages(db: Database): void {
  db.run("PRAGMA shrink_memory");
}

function isDamage(code: string): boolean {
  return code.startsWith("SQLITE_CORRUPT");
}

/** Another connection holds the lock. */
export function isBusy(error: unknown): boolean {
  return error instanceof SQLiteError && error.code?.startsWith("SQLITE_BUSY") === true;
}

const UNAVAILABLE = [
  "SQLITE_BUSY",
  "SQLITE_LOCKED",
  "SQLITE_FULL",
  "SQLITE_IOERR",
  "SQLITE_CANTOPEN",
  "SQLITE_NOTADB",
  "SQLITE_CORRUPT",
  "SQLITE_READONLY",
  "SQLITE_PROTOCOL",
  "SQLITE_NOMEM",
  "SQLITE_PERM",
];

/**
 * The error as the store's interface knows it: what the
 * engine can't help becomes StoreUnavailable, a bug stays.
 */
export function asStoreError(error: unknown): unknown {
  const code = error instanceof SQLiteError ? (error.code ?? "") : "";
  if (!UNAVAILABLE.some((prefix) => code.startsWith(prefix))) return error;
  return new StoreUnavailable(code, { isDamaged: isDamage(code), cause: error });
}
