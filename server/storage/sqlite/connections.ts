import type { Database } from "bun:sqlite";
import type { Commit } from "../storage.ts";
import { GroupCommit } from "./commit/group-commit.ts";
import { WRITE_LIMITS, type WriteLimits, WriteQueue } from "./commit/write-queue.ts";
import { WriterThread } from "./commit/writer-thread.ts";
import { FileGuard } from "./files/file-guard.ts";
import { connect, openDatabase, withReasons } from "./files/sqlite-database.ts";
import { MEMORY } from "./files/sqlite-url.ts";
import { SharedRead } from "./read/read-transaction.ts";
import { StatementCache } from "./statements/statement-cache.ts";

/** The reader's part of the memory for pages: it reads every row, a writer only those that it changes. */
const READER_SHARE = 3 / 4;

type ConnectionOptions = {
  readonly onCommit: (commit: Commit) => void;
  readonly onFault: (sentence: string) => void;
  /** For tests that need one of the two places; null to let the measured commit time decide. */
  readonly chooseWhere: (() => Commit["where"]) | null;
  /** Memory for pages, shared by all connections. */
  readonly cacheKib: number;
  readonly lockWaitMs: number;
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
 * The two connections of a running service: one reads and one writes, so that reads are answered from the
 * last commit while a batch of writes is under way. A database in memory has one connection that does both.
 */
export class SqliteConnections {
  readonly reader: StatementCache;
  readonly read: SharedRead;
  readonly write: WriteQueue;
  readonly #databases: readonly Database[];
  readonly #writer: Database;
  readonly #guard: FileGuard;
  readonly #guards: readonly FileGuard[];
  readonly #groupCommit: GroupCommit;

  /** Takes open databases, so that a test can watch what reaches them. Both may be the same one. */
  constructor(
    reader: Database,
    writer: Database,
    {
      onCommit = () => {},
      limits = WRITE_LIMITS,
      startThread = () => null,
      chooseWhere = null,
    }: Partial<Pick<ConnectionOptions, "onCommit" | "chooseWhere">> & {
      readonly limits?: WriteLimits;
      readonly startThread?: (guard: FileGuard) => WriterThread | null;
    } = {},
  ) {
    const guard = new FileGuard(writer);
    // The reader's guard refuses when the two are on different files.
    const readerGuard = reader === writer ? guard : new FileGuard(reader, guard.identity);
    this.#guards = [...new Set([readerGuard, guard])];
    const read = new SharedRead(reader, readerGuard, reader !== writer);
    this.#databases = [...new Set([reader, writer])];
    this.#writer = writer;
    this.#guard = guard;
    this.#groupCommit = new GroupCommit(writer, guard, limits.lockWaitMs);
    this.reader = new StatementCache(reader);
    this.read = read;
    this.write = new WriteQueue({
      statements: new StatementCache(writer),
      groupCommit: this.#groupCommit,
      thread: startThread(guard),
      chooseWhere,
      endReads: () => read.end(),
      onCommit,
      limits,
    });
    opened.add(this.#guards);
  }

  /** @throws CommandRefused as openDatabase does */
  static open(
    path: string,
    { onCommit, onFault, chooseWhere, cacheKib, lockWaitMs }: ConnectionOptions,
  ): SqliteConnections {
    const limits = { ...WRITE_LIMITS, lockWaitMs };
    const readerKib = Math.round(cacheKib * READER_SHARE);
    const writerKib = Math.round((cacheKib - readerKib) / 2);
    const databases: Database[] = [];
    const add = (database: Database): Database => {
      databases.push(database);
      return database;
    };
    try {
      return withReasons(path, () => {
        const writer = add(openDatabase(path, { cacheKib: writerKib, lockWaitMs }));
        if (path === MEMORY) return new SqliteConnections(writer, writer, { onCommit }); // which no thread can open
        return new SqliteConnections(add(connect(path, { cacheKib: readerKib, lockWaitMs })), writer, {
          onCommit,
          chooseWhere,
          limits,
          startThread: ({ identity }) =>
            new WriterThread({ path, identity, lockWaitMs, cacheKib: writerKib }, onFault),
        });
      });
    } catch (error) {
      for (const database of databases) database.close();
      throw error;
    }
  }

  /**
   * Runs one transaction outside the queue, so only before its first write.
   *
   * @returns what `transact` returned, once it is durable
   */
  async runAlone<T>(transact: (statements: StatementCache) => T): Promise<T> {
    const statements = new StatementCache(this.#writer);
    try {
      const {
        settled: [settled],
      } = await this.#groupCommit.commit([() => transact(statements)]);
      if (!settled?.ok) throw settled?.error;
      return settled.value as T;
    } finally {
      statements.close();
    }
  }

  /** @throws StoreUnavailable when reads or writes cannot be answered */
  ping(): void {
    this.#guard.require();
    this.read.run(() => this.reader.get("SELECT 1 FROM customers LIMIT 1"));
    this.read.end();
    // A write that is under way shows that writes can be answered, and its transaction must be left alone.
    if (this.write.depth === 0) this.#groupCommit.probe();
  }

  /** Finishes the accepted writes, then closes both connections. The last process deletes -wal and -shm. */
  async close(): Promise<void> {
    await this.write.close();
    this.read.end();
    opened.delete(this.#guards);
    for (const guard of this.#guards) guard.leave();
    this.read.close();
    this.reader.close();
    for (const database of this.#databases) database.close();
  }
}
