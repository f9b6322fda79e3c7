import { Database, SQLiteError } from "bun:sqlite";
import { existsSync, rmSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { CommandRefused } from "../../domain/command-refused.ts";
import {
  COPY_TABLE_NAMES,
  type CopyRow,
  type CopySource,
  type CopyTableName,
  type CopyTarget,
  columnsOfTable,
  keyOfRow,
  keyOfTable,
  outcomeText,
  type TargetState,
  targetStateOf,
} from "../copy/copy-tables.ts";
import { syncFile } from "../synced-file.ts";
import { cantBeWritten, giveName, removeDatabase } from "./files/backup.ts";
import { LINK_AUDIT_ROWS } from "./files/schema.ts";
import { refuseSecondName } from "./files/second-name.ts";
import {
  isBusy,
  openDatabase,
  openExistingDatabase,
  requireDirectory,
  requireThisSchema,
} from "./files/sqlite-database.ts";
import { MEMORY } from "./files/sqlite-url.ts";
import { StatementCache } from "./statements/statement-cache.ts";

/** How a value of each kind is read as text, and written from it. */
const READ = {
  text: (column: string) => column,
  uuid: (column: string) => column,
  integer: (column: string) => `CAST(${column} AS TEXT)`,
  // SQLite makes an empty text of NULL.
  digest: (column: string) => `nullif(lower(hex(${column})), '')`,
};
const WRITTEN = { text: "?", uuid: "?", integer: "CAST(? AS INTEGER)", digest: "unhex(?)" };

class SqliteRows implements CopySource {
  readonly identity: string;
  readonly statements: StatementCache;
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
    this.statements = new StatementCache(db);
    this.identity =
      this.statements.get<{ identity: string }>("SELECT lower(hex(key)) AS identity FROM cursor_key")
        ?.identity ?? "";
  }

  page(table: CopyTableName, after: CopyRow | null, limit: number): readonly CopyRow[] {
    const names = keyOfTable(table).map(([name]) => `${table}.${name}`);
    const values = keyOfTable(table).map(([, kind]) => WRITTEN[kind]);
    const where = after === null ? "" : `WHERE (${names.join(", ")}) > (${values.join(", ")})`;
    const key = after === null ? [] : keyOfRow(table, after);
    return this.#select(table, `${where} ORDER BY ${names.join(", ")} LIMIT ?`, ...key, limit);
  }

  last(table: CopyTableName): CopyRow | null {
    const order = keyOfTable(table).map(([name]) => `${table}.${name} DESC`);
    return this.#select(table, `ORDER BY ${order.join(", ")} LIMIT 1`)[0] ?? null;
  }

  get isEmpty(): boolean {
    return COPY_TABLE_NAMES.every((table) => this.last(table) === null);
  }

  transact(work: (statements: StatementCache) => void): void {
    this.#orInterrupted(() => this.#db.transaction(() => work(this.statements)).immediate());
  }

  /** Rows are copied without their links, which an engine may not have. */
  linkAuditRows(): void {
    this.#orInterrupted(() => this.#db.transaction(() => this.#db.run(LINK_AUDIT_ROWS)).immediate());
  }

  close(): void {
    this.statements.close();
    this.#db.close();
  }

  // Names are qualified: ORDER BY would take the text of a value for its column, and sort the whole table.
  #select(table: CopyTableName, rest: string, ...params: (string | number | null)[]): CopyRow[] {
    const columns = columnsOfTable(table);
    const list = columns.map(([name, kind]) => `${READ[kind](`${table}.${name}`)} AS ${name}`);
    const text = `SELECT ${list.join(", ")} FROM ${table} ${rest}`;
    const rows = this.#orInterrupted(() =>
      this.statements.all<Record<string, string | null>>(text, ...params),
    );
    return rows.map((row) =>
      columns.map(([name]) => (name === "outcome" ? outcomeText(row["outcome"] ?? "") : (row[name] ?? null))),
    );
  }

  /** What fails is named here, where it is known which of the two sides it is. @throws CommandRefused */
  #orInterrupted<T>(work: () => T): T {
    try {
      return work();
    } catch (error) {
      if (!(error instanceof SQLiteError)) throw error;
      throw new CommandRefused(
        `${this.#db.filename} can't be used: ${error.message} (${error.code}). Repeat the copy: it resumes.`,
        { cause: error },
      );
    }
  }
}

/**
 * Holds a database, so that nobody else reads or writes it, while `work` copies from it. Its rows stay as they are.
 *
 * @throws CommandRefused when a process has it open
 */
export async function withSqliteSource<T>(
  path: string,
  lockWaitMs: number | undefined,
  work: (source: SqliteRows) => Promise<T>,
): Promise<T> {
  refuseSecondName(path);
  openExistingDatabase(path, lockWaitMs).close();
  const held = heldAlone(path);
  const rows = new SqliteRows(held);
  try {
    requireThisSchema(held);
    return await work(rows);
  } finally {
    rows.close();
  }
}

/**
 * Locked exclusively before the first look into the write-ahead log, a database admits no other connection, and
 * is refused while another process has it open, whatever the system can say about open files.
 */
function heldAlone(path: string): Database {
  const db = new Database(path, { readwrite: true, create: false, strict: true });
  try {
    db.run("PRAGMA busy_timeout = 0");
    db.run("PRAGMA locking_mode = EXCLUSIVE");
    db.run("PRAGMA query_only = ON");
    db.run("PRAGMA user_version");
    return db;
  } catch (error) {
    db.close();
    if (!isBusy(error)) throw error;
    throw new CommandRefused(`${path} is open in a running process. Stop the service first, then copy.`, {
      cause: error,
    });
  }
}

/**
 * The target of a copy grows under another name, so that no service starts on a part, and gets its own name at last.
 *
 * @param identity of the source
 * @throws CommandRefused when there is a database already, or a part of another copy
 */
export async function withSqliteTarget<T>(
  path: string,
  identity: string,
  lockWaitMs: number | undefined,
  work: (target: CopyTarget) => Promise<T>,
): Promise<T> {
  if (path === MEMORY) throw new CommandRefused("A database in memory ends with its service. Name a file.");
  if (existsSync(path)) {
    // A copy that ended while its file had both names: it is whole.
    if (isSameFile(path, partOf(path))) rmSync(partOf(path));
    return await withSqliteSource(path, lockWaitMs, async (rows) => {
      const isSameIdentity = rows.identity === identity;
      const state = targetStateOf({ isMarked: false, isEmpty: false, isSameIdentity });
      if (state !== "finished") {
        throw new CommandRefused(`${path} exists; a copy replaces nothing. Name a file that does not exist.`);
      }
      removeDatabase(partOf(path));
      return await work(targetOf(path, rows, state));
    });
  }
  if (existsSync(`${path}-wal`)) {
    throw new CommandRefused(
      `${path}-wal is left of an earlier database, and would be played into the new one. Name another file, or remove it.`,
    );
  }
  requireDirectory(path);
  const part = partOf(path);
  const db = openDatabase(part, lockWaitMs === undefined ? {} : { lockWaitMs });
  const found = new SqliteRows(db);
  const { isEmpty } = found;
  const state = targetStateOf({ isMarked: true, isEmpty, isSameIdentity: found.identity === identity });
  if (state === "not-empty" || state === "another-copy") {
    found.close();
    throw new CommandRefused(
      `${part} is a part of a copy from another database. Remove it, or name another file.`,
    );
  }
  if (state === "new") {
    found.transact((statements) => statements.run("UPDATE cursor_key SET key = unhex(?)", identity));
  }
  try {
    return await work(targetOf(path, found, state));
  } finally {
    found.close();
  }
}

function targetOf(path: string, rows: SqliteRows, state: TargetState): CopyTarget {
  const part = partOf(path);
  return {
    identity: rows.identity,
    state,
    removal: `remove ${part}`,
    page: (table, after, limit) => rows.page(table, after, limit),
    last: (table) => rows.last(table),

    add(table, added) {
      const columns = columnsOfTable(table);
      const names = columns.map(([name]) => name).join(", ");
      const values = columns.map(([, kind]) => WRITTEN[kind]).join(", ");
      const text = `INSERT INTO ${table} (${names}) VALUES (${values})`;
      rows.transact((statements) => {
        for (const row of added) statements.run(text, ...row);
      });
    },

    /** Closed before it is renamed: the last connection folds the write-ahead log in. */
    finish() {
      rows.linkAuditRows();
      rows.close();
      try {
        syncFile(part);
        giveName(part, path);
        syncFile(dirname(path));
      } catch (error) {
        throw cantBeWritten(path, error);
      }
      removeDatabase(part);
    },
  };
}

function isSameFile(path: string, other: string): boolean {
  const [file, second] = [path, other].map((name) => statSync(name, { throwIfNoEntry: false }));
  return file !== undefined && file.ino === second?.ino && file.dev === second.dev;
}

function partOf(path: string): string {
  return `${path}.copying`;
}
