import { statSync } from "node:fs";
import type { Commit, FirstStart, Storage, StorageOptions, StorageStats } from "../storage.ts";
import { SqliteConnections } from "./connections.ts";
import { SqliteCustomerStore } from "./sqlite-customer-store.ts";
import { MEMORY } from "./sqlite-database.ts";
import { firstStart } from "./sqlite-first-start.ts";
import { SqliteTokenStore } from "./sqlite-token-store.ts";

export type SqliteOptions = StorageOptions & {
  /** Where the next write is committed; by default what was measured decides. For tests that need one of the two. */
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

  /** @throws DatabaseRefused as openDatabase does */
  static open(path: string, { onFault = () => {}, chooseWhere }: SqliteOptions = {}): SqliteStorage {
    const isBusy = chooseWhere && (() => chooseWhere() === "thread");
    return new SqliteStorage(path, SqliteConnections.openAdaptive(path, onFault, isBusy));
  }

  /** On connections that a test has opened, and may watch. */
  static over(...connections: Parameters<typeof SqliteConnections.over>): SqliteStorage {
    return new SqliteStorage(connections[1].filename, SqliteConnections.over(...connections));
  }

  firstStart(hasSamples: boolean, nowMs: number): Promise<FirstStart | null> {
    return firstStart(this.#connections, this.#path, hasSamples, nowMs);
  }

  ping(): void {
    this.#connections.read.requirePlace();
    this.#connections.read.run(() => this.#connections.reader.get("SELECT 1 FROM customers LIMIT 1"));
  }

  stats(): StorageStats {
    return {
      writesWaiting: 0,
      databaseBytes: bytesOf(this.#path),
      logBytes: this.#path === MEMORY ? 0 : bytesOf(`${this.#path}-wal`),
    };
  }

  close(): Promise<void> {
    return this.#connections.close();
  }
}

function bytesOf(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.size ?? 0;
}
