import type { Database } from "bun:sqlite";
import { statSync } from "node:fs";
import {
  type Commit,
  DATABASE_MEMORY_MIB,
  type FirstStart,
  LOCK_WAIT_MS,
  type Storage,
  type StorageOptions,
  type StorageStats,
} from "../storage.ts";
import type { WriteLimits } from "./commit/write-queue.ts";
import { SqliteConnections } from "./connections.ts";
import { looseModes } from "./files/sqlite-database.ts";
import { MEMORY } from "./files/sqlite-url.ts";
import { SqliteCustomerStore } from "./sqlite-customer-store.ts";
import { firstStart } from "./sqlite-first-start.ts";
import { SqliteTokenStore } from "./sqlite-token-store.ts";

type SqliteOptions = StorageOptions & {
  /**
   * Where the next batch is committed, for tests that need one of
   * the two places; without it the measured commit time decides.
   */
  readonly chooseWhere?: () => Commit["where"];
};

/** A database file, or one in memory. Its reads are answered as plain values. */
export class SqliteStorage implements Storage {
  readonly customers: SqliteCustomerStore;
  readonly tokens: SqliteTokenStore;
  readonly #path: string;
  readonly #connections: SqliteConnections;

  /** @param path a file, or MEMORY */
  constructor(path: string, connections: SqliteConnections) {
    this.#path = path;
    this.#connections = connections;
    this.customers = new SqliteCustomerStore(connections);
    this.tokens = new SqliteTokenStore(connections);
  }

  /** @throws CommandRefused as openDatabase does */
  static open(path: string, options: SqliteOptions = {}): SqliteStorage {
    const {
      onCommit = () => {},
      onFault = () => {},
      chooseWhere = null,
      memoryMib = DATABASE_MEMORY_MIB,
      lockWaitMs = LOCK_WAIT_MS,
    } = options;
    const cacheKib = memoryMib * 1024;
    const connections = SqliteConnections.open(path, {
      onCommit,
      onFault,
      chooseWhere,
      cacheKib,
      lockWaitMs,
    });
    try {
      return new SqliteStorage(path, connections);
    } catch (error) {
      // Not waited for: the writer's thread ends in a later turn.
      connections.close().catch(({ message }) => onFault(`${path} could not be closed: ${message}.`));
      throw error;
    }
  }

  /** Takes connections that a test has opened, so that it can watch them. */
  static over(reader: Database, writer: Database, limits?: WriteLimits): SqliteStorage {
    const options = limits === undefined ? {} : { limits };
    return new SqliteStorage(writer.filename, new SqliteConnections(reader, writer, options));
  }

  /** Resolves when the writer's thread has started, which writes need not wait for. */
  get ready(): Promise<void> {
    return this.#connections.write.ready;
  }

  /** @returns a sentence for each file that others than its owner may read or write */
  looseModes(): readonly string[] {
    return looseModes(this.#path);
  }

  firstStart(hasSamples: boolean, nowMs: number): Promise<FirstStart | null> {
    return firstStart(this.#connections, this.#path, hasSamples, nowMs);
  }

  ping(): void {
    this.#connections.ping();
  }

  stats(): StorageStats {
    return {
      writesWaiting: this.#connections.write.depth,
      databaseBytes: bytesOf(this.#path),
      logBytes: this.#path === MEMORY ? 0 : bytesOf(`${this.#path}-wal`),
      connections: [],
    };
  }

  close(): Promise<void> {
    return this.#connections.close();
  }
}

/**
 * @returns NaN where the file cannot be looked at: then its
 *   reads and writes say so, and the other metrics go on
 */
function bytesOf(file: string): number {
  try {
    return statSync(file, { throwIfNoEntry: false })?.size ?? 0;
  } catch {
    return Number.NaN;
  }
}
