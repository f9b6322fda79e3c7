import type { WriteCount } from "../../domain/rollout/write-count.ts";
import { COUNTS_PAGE, countKeyParams, type WriteCountStore } from "../write-counts/write-count-store.ts";
import type { WriteQueue } from "./commit/write-queue.ts";
import type { SharedRead } from "./read/read-transaction.ts";
import { PAGE_OF_COUNTS } from "./statements/write-counts.ts";

/** Counts of writes in SQLite. What is added shares a commit with the writes that wait at that moment. */
export function sqliteWriteCounts(read: SharedRead, write: WriteQueue) {
  return {
    add: (counts) => write.run("addWriteCounts", { counts }),

    page(fromDay, after) {
      const params = [...countKeyParams(after), fromDay, COUNTS_PAGE];
      return read.all<WriteCount>(PAGE_OF_COUNTS, ...params);
    },

    purge: (beforeDay) => write.run("purgeWriteCounts", { beforeDay }),
  } satisfies WriteCountStore;
}
