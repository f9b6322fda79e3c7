import type { Database } from "bun:sqlite";
import type { Commit } from "../storage.ts";
import { GroupCommit } from "./commit/group-commit.ts";
import { WRITE_LIMITS, type WriteLimits, WriteQueue } from "./commit/write-queue.ts";
import { WriterThread } from "./commit/writer-thread.ts";
import { FileGuard } from "./files/file-guard.ts";
import { connect, openDatabase } from "./files/sqlite-database.ts";
import { MEMORY } from "./files/sqlite-url.ts";
import { SharedRead } from "./read/read-transaction.ts";
import { StatementCache } from "./statements/statement-cache.ts";

/** Of the memory for pages the reader gets this part: it alone meets every row. */
const READER_SHARE = 3 / 4;

type ConnectionOptions = {
  readonly onCommit: (commit: Commit) => void;
  readonly onFault: (sentence: string) => void;
  /** For tests that need one of the two; by default the measured commit time decides. */
  readonly chooseWhere: (() => Commit["where"]) | null;
  /** Memory for pages, over all connections. */
  readonly cacheKib: number;
  readonly lockWaitMs: number;
};

/**
 * The two connections of a running service: one reads, one writes, so that reads see the last commit while a
 * batch of writes is under way. A database in memory has one connection that does both.
 */
export class SqliteConnections {
  readonly reader: StatementCache;
  readonly read: SharedRead;
  readonly write: WriteQueue;
  readonly #databases: readonly Database[];
  readonly #writer: Database;
  readonly #guard: FileGuard;
  readonly #groupCommit: GroupCommit;

  /** On opened databases, which may be one and the same, so that a test can watch what reaches them. */
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
    const read = new SharedRead(reader, reader !== writer);
    const guard = new FileGuard(writer);
    if (reader !== writer) new FileGuard(reader, guard.identity); // refuses when the two are on different files
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
  }

  /** @throws CommandRefused as openDatabase does */
  static open(
    path: string,
    { onCommit, onFault, chooseWhere, cacheKib, lockWaitMs }: ConnectionOptions,
  ): SqliteConnections {
    const limits = { ...WRITE_LIMITS, lockWaitMs };
    const readerKib = Math.round(cacheKib * READER_SHARE);
    const writerKib = Math.round((cacheKib - readerKib) / 2);
    const writer = openDatabase(path, { cacheKib: writerKib, lockWaitMs });
    if (path === MEMORY) return new SqliteConnections(writer, writer, { onCommit }); // which no thread can open
    return new SqliteConnections(connect(path, { cacheKib: readerKib, lockWaitMs }), writer, {
      onCommit,
      chooseWhere,
      limits,
      startThread: ({ identity }) =>
        new WriterThread({ path, identity, lockWaitMs, cacheKib: writerKib }, onFault),
    });
  }

  /** One transaction before the first write of the queue. @returns what it returns, once it is durable */
  async runAlone<T>(transact: (statements: StatementCache) => T): Promise<T> {
    const statements = new StatementCache(this.#writer);
    try {
      const [settled] = await this.#groupCommit.commit([() => transact(statements)]);
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
    // What is under way shows that writes can be answered; its transaction must be left alone.
    if (this.write.depth === 0) this.#groupCommit.probe();
  }

  /** Finishes the writes that were taken, then closes both; -wal and -shm go with the last process. */
  async close(): Promise<void> {
    await this.write.close();
    this.read.end();
    this.#guard.leave();
    this.read.close();
    this.reader.close();
    for (const database of this.#databases) database.close();
  }
}
