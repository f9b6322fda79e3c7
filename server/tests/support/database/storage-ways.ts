import { openStorage } from "../../../storage/database-url/open-storage.ts";
import { MEMORY } from "../../../storage/sqlite/files/sqlite-url.ts";
import { SqliteStorage } from "../../../storage/sqlite/sqlite-storage.ts";
import type { Storage, StorageOptions } from "../../../storage/storage.ts";
import { ENGINE, postgresUrlOf } from "../postgres/postgres-databases.ts";

/** A way to keep data that the tests of this run tell apart. */
type StorageWay = {
  readonly title: string;
  /** @param file may hold the database already */
  readonly open: (file: string, options?: StorageOptions) => Promise<Storage>;
};

const onPostgres: StorageWay = {
  title: "on PostgreSQL",
  open: (file, options) => openStorage(postgresUrlOf(file), options),
};
const inMemory: StorageWay = {
  title: "in memory",
  open: async (_, options) => SqliteStorage.open(MEMORY, options),
};
/** As of an engine elsewhere. */
const promised: StorageWay = {
  title: "in memory, every answer a promise that a later turn of the event loop resolves",
  open: async (_, options) => {
    const storage = SqliteStorage.open(MEMORY, options);
    return {
      customers: late(storage.customers),
      tokens: late(storage.tokens),
      writeCounts: late(storage.writeCounts),
      audit: late(storage.audit),
      persons: late(storage.persons),
      firstStart: storage.firstStart.bind(storage),
      ping: storage.ping.bind(storage),
      stats: storage.stats.bind(storage),
      close: storage.close.bind(storage),
    };
  },
};
const measured: StorageWay = {
  title: "on disk",
  open: async (file, options) => SqliteStorage.open(file, { ...options, hasWriterThread: true }),
};
const inline: StorageWay = {
  title: "on disk, writes in the thread of requests",
  open: async (file, options) => SqliteStorage.open(file, options),
};
const threaded: StorageWay = {
  title: "on disk, writes in a thread of their own",
  open: async (file, options) => SqliteStorage.open(file, { ...options, chooseWhere: () => "thread" }),
};
let turn = 0;
const byTurns: StorageWay = {
  title: "on disk, writes in the one thread and the other by turns",
  open: async (file, options) =>
    SqliteStorage.open(file, {
      ...options,
      chooseWhere: () => {
        turn += 1;
        return turn % 3 === 0 ? "thread" : "inline";
      },
    }),
};

/** Every way of the engine that the run is about. */
export const STORAGE_WAYS: readonly StorageWay[] =
  ENGINE === "postgres" ? [onPostgres] : [inMemory, promised, inline, threaded, byTurns];

/** One that nobody else has, and that is gone at the end. */
export const ANY_WAY = ENGINE === "postgres" ? onPostgres : inMemory;

/** As in production. */
export const USUAL_WAY = ENGINE === "postgres" ? onPostgres : measured;

/** As in production under load: a write is answered in a later turn than the one that brought it. */
export const LATE_WAY = ENGINE === "postgres" ? onPostgres : threaded;

/** Two services over one database, which commit in different places where there are any. */
export const TWO_WAYS = ENGINE === "postgres" ? [onPostgres, onPostgres] : [inline, threaded];

/** The same object, each of its methods called in a later turn. */
function late<T extends object>(near: T): T {
  return new Proxy(near, {
    get(_, name) {
      const value: unknown = Reflect.get(near, name, near);
      if (typeof value !== "function") return value;
      return async (...args: unknown[]) => {
        await new Promise(setImmediate);
        return Reflect.apply(value, near, args);
      };
    },
  });
}
