import type { WriteCount } from "../../domain/rollout/write-count.ts";
import type { WriteCountStore } from "../write-count-store.ts";
import type { WriteQueue } from "./commit/write-queue.ts";
import type { SharedRead } from "./read/read-transaction.ts";
import { LIST_COUNTS, type WriteCountRow, writeCountOf } from "./statements/write-counts.ts";

/** Counts of writes in SQLite. What is added shares a commit with the writes that wait at that moment. */
export class SqliteWriteCounts implements WriteCountStore {
  readonly #read: SharedRead;
  readonly #write: WriteQueue;

  constructor(read: SharedRead, write: WriteQueue) {
    this.#read = read;
    this.#write = write;
  }

  add(counts: readonly WriteCount[]): Promise<void> {
    return this.#write.run("addWriteCounts", { counts });
  }

  list(fromDay: string): WriteCount[] {
    return this.#read.all<WriteCountRow>(LIST_COUNTS, fromDay).map(writeCountOf);
  }

  purge(beforeDay: string): Promise<number> {
    return this.#write.run("purgeWriteCounts", { beforeDay });
  }
}
