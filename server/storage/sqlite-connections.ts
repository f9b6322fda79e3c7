import type { Database } from "bun:sqlite";
import { GROUP_COMMIT_LIMITS, GroupCommit, type GroupCommitLimits } from "./group-commit.ts";
import { SharedRead } from "./shared-read.ts";
import { connect, MEMORY, openDatabase } from "./sqlite-database.ts";
import { StatementCache } from "./statement-cache.ts";

/**
 * The two connections of a running service: one reads, one writes, so that reads see the last commit while a
 * batch of writes is under way. A database in memory has one connection that does both.
 */
export class SqliteConnections {
  readonly reader: StatementCache;
  readonly writer: StatementCache;
  readonly read: SharedRead;
  readonly write: GroupCommit;
  readonly #databases: ReadonlySet<Database>;

  /** Takes opened databases, so that a test can watch what reaches them. */
  constructor(reader: Database, writer: Database, limits: GroupCommitLimits = GROUP_COMMIT_LIMITS) {
    this.#databases = new Set([reader, writer]);
    this.reader = new StatementCache(reader);
    this.writer = new StatementCache(writer);
    // A locked file is waited for without stopping the event loop (GroupCommit), so not inside SQLite.
    writer.run("PRAGMA busy_timeout = 0");
    this.read = new SharedRead(reader, reader !== writer);
    this.write = new GroupCommit(writer, () => this.read.end(), limits);
  }

  /** @throws DatabaseRefused as openDatabase does */
  static open(path: string): SqliteConnections {
    const writer = openDatabase(path);
    return new SqliteConnections(path === MEMORY ? writer : connect(path), writer);
  }

  /** Finishes the writes that were taken, then closes both; -wal and -shm go with the last process. */
  async close(): Promise<void> {
    await this.write.close();
    this.read.close();
    this.reader.close();
    this.writer.close();
    for (const database of this.#databases) database.close();
  }
}
