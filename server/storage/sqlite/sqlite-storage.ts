import type { Database } from "bun:sqlite";
import { statfsSync, statSync } from "node:fs";
import { dirname } from "node:path";
import {
  type Commit,
  DATABASE_MEMORY_MIB,
  type FirstStart,
  LOCK_WAIT_MS,
  type Storage,
  type StorageOptions,
  type StorageStats,
} from "../storage.ts";
import { GroupCommit } from "./commit/group-commit.ts";
import { WRITE_LIMITS, type WriteLimits, WriteQueue } from "./commit/write-queue.ts";
import { WriterThread } from "./commit/writer-thread.ts";
import { FileGuard } from "./files/file-guard.ts";
import { connect, openDatabase, withReasons } from "./files/sqlite-database.ts";
import { MEMORY } from "./files/sqlite-url.ts";
import { SharedRead } from "./read/read-transaction.ts";
import { sqliteAuditTrail } from "./sqlite-audit-trail.ts";
import { sqliteCustomerStore } from "./sqlite-customer-store.ts";
import { firstStart } from "./sqlite-first-start.ts";
import { sqlitePersons } from "./sqlite-persons.ts";
import { sqliteTokenStore } from "./sqlite-token-store.ts";
import { sqliteWriteCounts } from "./sqlite-write-counts.ts";
import { StatementCache } from "./statements/statement-cache.ts";

/** The reader's part of the memory for pages: it reads every row, a writer only those that it changes. */
const READER_SHARE = 3 / 4;

type QueueOptions = {
  readonly onCommit?: (commit: Commit) => void;
  /**
   * Where the next batch is committed, for tests that need one of the two places, both of which
   * there are then; without it the measured commit time decides.
   */
  readonly chooseWhere?: () => Commit["where"];
};

/**
 * The guards of the connections that are open. Bun closes every database when the process ends,
 * after an uncaught exception too, and {@link FileGuard.leave} must come before that.
 */
const opened = new Set<readonly FileGuard[]>();
process.on("exit", () => {
  for (const guard of [...opened].flat()) guard.leave();
});

/**
 * A database file, or one in memory. Its reads are answered as plain values.
 *
 * A file has two connections: one reads and one writes, so that reads are answered from the last commit
 * while a batch of writes is under way. A database in memory has one connection that does both.
 */
export class SqliteStorage implements Storage {
  readonly customers: ReturnType<typeof sqliteCustomerStore>;
  readonly tokens: ReturnType<typeof sqliteTokenStore>;
  readonly writeCounts: ReturnType<typeof sqliteWriteCounts>;
  readonly audit: ReturnType<typeof sqliteAuditTrail>;
  readonly persons: ReturnType<typeof sqlitePersons>;
  readonly read: SharedRead;
  readonly write: WriteQueue;
  readonly #path: string;
  readonly #databases: readonly Database[];
  readonly #guard: FileGuard;
  readonly #guards: readonly FileGuard[];
  readonly #groupCommit: GroupCommit;
  readonly #statements: StatementCache;

  /** Takes open databases, so that a test can watch what reaches them. Both may be the same one. */
  constructor(
    reader: Database,
    writer: Database,
    {
      onCommit = () => {},
      chooseWhere,
      limits = WRITE_LIMITS,
      startThread = () => null,
    }: QueueOptions & {
      readonly limits?: WriteLimits;
      readonly startThread?: (guard: FileGuard) => WriterThread | null;
    } = {},
  ) {
    const guard = new FileGuard(writer);
    // The reader's guard refuses when the two are on different files.
    const readerGuard = reader === writer ? guard : new FileGuard(reader, guard.identity);
    const read = new SharedRead(reader, readerGuard, reader !== writer);
    const row = read.get<{ key: Uint8Array }>("SELECT key FROM cursor_key");
    if (row === null) {
      read.close();
      throw new Error("the database has no cursor key");
    }
    this.#path = writer.filename;
    this.#databases = [...new Set([reader, writer])];
    this.#guard = guard;
    this.#guards = [...new Set([readerGuard, guard])];
    this.#statements = new StatementCache(writer);
    this.#groupCommit = new GroupCommit(writer, guard, limits.lockWaitMs, () =>
      this.#statements.chainEnds.clear(),
    );
    this.read = read;
    this.write = new WriteQueue({
      statements: this.#statements,
      groupCommit: this.#groupCommit,
      thread: startThread(guard),
      chooseWhere: chooseWhere ?? null,
      read,
      onCommit,
      limits,
    });
    this.customers = sqliteCustomerStore(row.key, read, this.write);
    this.tokens = sqliteTokenStore(read, this.write);
    this.writeCounts = sqliteWriteCounts(read, this.write);
    this.audit = sqliteAuditTrail(read, this.write);
    this.persons = sqlitePersons(this.#path, read, this.write, limits.lockWaitMs);
    opened.add(this.#guards);
  }

  /** @throws CommandRefused as openDatabase does */
  static open(path: string, options: StorageOptions & QueueOptions = {}): SqliteStorage {
    const {
      onFault = () => {},
      memoryMib = DATABASE_MEMORY_MIB,
      lockWaitMs = LOCK_WAIT_MS,
      hasWriterThread = options.chooseWhere !== undefined,
    } = options;
    const readerKib = Math.round(memoryMib * 1024 * READER_SHARE);
    const writerKib = Math.round((memoryMib * 1024 - readerKib) / 2);
    const databases: Database[] = [];
    const add = (database: Database): Database => {
      databases.push(database);
      return database;
    };
    try {
      return withReasons(path, () => {
        const writer = add(openDatabase(path, { cacheKib: writerKib, lockWaitMs }));
        // No thread can open a database in memory.
        if (path === MEMORY) return new SqliteStorage(writer, writer, options);
        return new SqliteStorage(add(connect(path, { cacheKib: readerKib, lockWaitMs })), writer, {
          ...options,
          limits: { ...WRITE_LIMITS, lockWaitMs },
          startThread: ({ identity }) =>
            hasWriterThread
              ? new WriterThread({ path, identity, lockWaitMs, cacheKib: writerKib }, onFault)
              : null,
        });
      });
    } catch (error) {
      for (const database of databases) database.close();
      throw error;
    }
  }

  /** Resolves when the writer's thread has started, which writes need not wait for. */
  get ready(): Promise<void> {
    return this.write.ready;
  }

  firstStart(hasSamples: boolean, nowMs: number): Promise<FirstStart | null> {
    const transact = <T>(work: (statements: StatementCache) => T) => this.#runAlone(work);
    return firstStart({ read: this.read, transact, path: this.#path }, hasSamples, nowMs);
  }

  /** @throws StoreUnavailable when reads or writes cannot be answered */
  ping(): void {
    this.#guard.require();
    this.read.get("SELECT 1 FROM customers LIMIT 1");
    this.read.end();
    // A write that is under way shows that writes can be answered, and its transaction must be left alone.
    if (this.write.depth === 0) this.#groupCommit.probe();
  }

  stats(): StorageStats {
    return {
      writesWaiting: this.write.depth,
      databaseBytes: bytesOf(this.#path),
      logBytes: this.#path === MEMORY ? 0 : bytesOf(`${this.#path}-wal`),
      freeBytes: this.#path === MEMORY ? Number.NaN : freeBytesOf(dirname(this.#path)),
      connections: [],
    };
  }

  /** Finishes the accepted writes, then closes both connections. The last process deletes -wal and -shm. */
  async close(): Promise<void> {
    await this.write.close();
    this.read.end();
    opened.delete(this.#guards);
    for (const guard of this.#guards) guard.leave();
    this.read.close();
    for (const database of this.#databases) database.close();
  }

  /**
   * Runs one transaction outside the queue, so only before its first write.
   *
   * @returns what `work` returned, once it is durable
   */
  async #runAlone<T>(work: (statements: StatementCache) => T): Promise<T> {
    const [settled] = (await this.#groupCommit.commit([() => work(this.#statements)])).settled;
    if (!settled?.ok) throw settled?.error;
    return settled.value as T;
  }
}

/** For a user without privileges, as the service is. @returns NaN where the directory cannot be looked at */
function freeBytesOf(directory: string): number {
  try {
    const { bavail, bsize } = statfsSync(directory);
    return bavail * bsize;
  } catch {
    return Number.NaN;
  }
}

/** @returns NaN where the file cannot be looked at: then its reads and writes say so, and the other metrics go on */
function bytesOf(file: string): number {
  try {
    return statSync(file, { throwIfNoEntry: false })?.size ?? 0;
  } catch {
    return Number.NaN;
  }
}
