import type { WriteCount } from "../../domain/rollout/write-count.ts";
import { COUNTS_PAGE, type CountKey, countKeyParams, type WriteCountStore } from "../write-count-store.ts";
import type { WriteQueue } from "./commit/write-queue.ts";
import type { SharedRead } from "./read/read-transaction.ts";
import { PAGE_OF_COUNTS } from "./statements/write-counts.ts";

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

  page(fromDay: string, after: CountKey | null): WriteCount[] {
    const params = [...countKeyParams(after), fromDay, COUNTS_PAGE];
    return this.#read.all<WriteCount>(PAGE_OF_COUNTS, ...params);
  }

  purge(beforeDay: string): Promise<number> {
    return this.#write.run("purgeWriteCounts", { beforeDay });
  }
}
