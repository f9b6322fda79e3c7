/** The writer's thread: its own connection, and the same group commit as in one thread. */
import { StoreUnavailable } from "./customer-store.ts";
import { GroupCommit, type GroupCommitLimits } from "./group-commit.ts";
import { connect } from "./sqlite-database.ts";
import { StatementCache } from "./statement-cache.ts";
import { LocalWriter, type WriteRequest } from "./writer.ts";

/** A batch of writes goes there as JSON ({@link WriteRequest}s) and comes back as JSON: objects take twice the time to clone. */
export type ToThread =
  | string
  | { readonly kind: "open"; readonly path: string; readonly limits: GroupCommitLimits }
  | { readonly kind: "close" };

export type SettledWrite =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly message: string; readonly isUnavailable: boolean };

/** The outcomes of a batch ({@link SettledWrite}s as JSON), in its order. */
export type FromThread = string;

declare const self: Worker;

if (!Bun.isMainThread) {
  let close: (() => Promise<void>) | null = null;
  let writer: LocalWriter | null = null;

  self.onmessage = async ({ data }: MessageEvent<ToThread>): Promise<void> => {
    if (typeof data === "string") {
      const writes = JSON.parse(data) as WriteRequest[];
      const settled = await Promise.all(writes.map((write) => settle(writer, write)));
      self.postMessage(JSON.stringify(settled) satisfies FromThread);
    } else if (data.kind === "open") {
      const db = connect(data.path);
      // The group commit waits for locks itself, so that its limit holds.
      db.run("PRAGMA busy_timeout = 0");
      const opened = new LocalWriter(new StatementCache(db), new GroupCommit(db, () => {}, data.limits));
      writer = opened;
      close = async () => {
        await opened.close();
        db.close();
      };
    } else {
      await close?.();
      process.exit();
    }
  };
}

async function settle(writer: LocalWriter | null, { name, input }: WriteRequest): Promise<SettledWrite> {
  try {
    if (writer === null) throw new Error("the writer's thread was not opened");
    return { ok: true, value: await writer.run(name, input) };
  } catch (error) {
    const { message } = error as Error;
    return { ok: false, message, isUnavailable: error instanceof StoreUnavailable };
  }
}
