import type { Database } from "bun:sqlite";
import { AdaptiveWriter } from "./adaptive-writer.ts";
import { GROUP_COMMIT_LIMITS, GroupCommit, type GroupCommitLimits } from "./group-commit.ts";
import { SharedRead } from "./read-transaction.ts";
import { connect, MEMORY, openDatabase } from "./sqlite-database.ts";
import { StatementCache } from "./statement-cache.ts";
import { LocalWriter, type Writer } from "./writer.ts";
import { WriterThread } from "./writer-thread.ts";

/** 256 MiB: the customers of a million fit, and are read as fast as those of a thousand. A smaller file takes its size. */
const READER_CACHE_KIB = 262_144;

/**
 * The two connections of a running service: one reads, one writes, so that reads see the last commit while a
 * batch of writes is under way. A database in memory has one connection that does both.
 */
export class SqliteConnections {
  readonly reader: StatementCache;
  readonly read: SharedRead;
  readonly write: Writer;
  readonly #databases: readonly Database[];

  private constructor(
    databases: readonly Database[],
    reader: StatementCache,
    read: SharedRead,
    write: Writer,
  ) {
    this.#databases = databases;
    this.reader = reader;
    this.read = read;
    this.write = write;
  }

  /** On opened databases, which may be one and the same, so that a test can watch what reaches them. */
  static over(
    reader: Database,
    writer: Database,
    limits: GroupCommitLimits = GROUP_COMMIT_LIMITS,
  ): SqliteConnections {
    const { read, groupCommit } = joined(reader, writer, limits);
    const write = new LocalWriter(new StatementCache(writer), groupCommit, writer.filename === MEMORY);
    return new SqliteConnections([...new Set([reader, writer])], new StatementCache(reader), read, write);
  }

  /** Reads and writes in this thread: for commands, and for tests. @throws DatabaseRefused as openDatabase does */
  static open(path: string): SqliteConnections {
    const writer = openDatabase(path);
    return SqliteConnections.over(path === MEMORY ? writer : connect(path), writer);
  }

  /**
   * For a service: writes at once while little is going on, else in a thread of their own.
   *
   * @param onWriterDeath told when that thread died; the next write starts another
   * @param isBusy whether a commit in this thread would hold others up
   * @throws DatabaseRefused as openDatabase does
   */
  static openAdaptive(
    path: string,
    onWriterDeath: (reason: string) => void,
    isBusy = (reads: SharedRead): boolean => reads.isBusy,
  ): SqliteConnections {
    if (path === MEMORY) return SqliteConnections.open(path); // which no other thread can open
    const writer = openDatabase(path);
    const reader = connect(path);
    reader.run(`PRAGMA cache_size = -${READER_CACHE_KIB}`);
    const { read, groupCommit } = joined(reader, writer, GROUP_COMMIT_LIMITS);
    const thread = new WriterThread(path, GROUP_COMMIT_LIMITS, () => read.end(), onWriterDeath);
    const statements = new StatementCache(writer);
    const write = new AdaptiveWriter(statements, groupCommit, thread, () => isBusy(read));
    return new SqliteConnections([reader, writer], new StatementCache(reader), read, write);
  }

  /** Finishes the writes that were taken, then closes both; -wal and -shm go with the last process. */
  async close(): Promise<void> {
    await this.write.close();
    this.read.close();
    this.reader.close();
    for (const database of this.#databases) database.close();
  }
}

function joined(
  reader: Database,
  writer: Database,
  limits: GroupCommitLimits,
): { read: SharedRead; groupCommit: GroupCommit } {
  // A locked file is waited for without stopping the event loop (GroupCommit), so not inside SQLite.
  writer.run("PRAGMA busy_timeout = 0");
  const read = new SharedRead(reader, reader !== writer);
  // Reads under way end before anyone learns of a write: whoever does reads what it made.
  return { read, groupCommit: new GroupCommit(writer, () => read.end(), limits) };
}
