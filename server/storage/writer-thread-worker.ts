/** The writer's thread: its own connection, and the same group commit as in one thread. */
import { StoreUnavailable } from "./customer-store.ts";
import { GroupCommit, type GroupCommitLimits } from "./group-commit.ts";
import { connect } from "./sqlite-database.ts";
import { StatementCache } from "./statement-cache.ts";
import { LocalWriter, type WriteRequest } from "./writer.ts";

export type ToThread =
  | { readonly kind: "open"; readonly path: string; readonly limits: GroupCommitLimits }
  | { readonly kind: "write"; readonly writes: readonly WriteRequest[] }
  | { readonly kind: "close" };

export type SettledWrite =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly message: string; readonly isUnavailable: boolean };

/** The outcomes of a batch, in its order. */
export type FromThread = { readonly settled: readonly SettledWrite[] };

declare const self: Worker;

if (!Bun.isMainThread) {
  let close: (() => Promise<void>) | null = null;
  let writer: LocalWriter | null = null;

  self.onmessage = async ({ data }: MessageEvent<ToThread>): Promise<void> => {
    if (data.kind === "open") {
      const db = connect(data.path);
      // The group commit waits for locks itself, so that its limit holds.
      db.run("PRAGMA busy_timeout = 0");
      const opened = new LocalWriter(new StatementCache(db), new GroupCommit(db, () => {}, data.limits));
      writer = opened;
      close = async () => {
        await opened.close();
        db.close();
      };
    } else if (data.kind === "write") {
      const settled = await Promise.all(data.writes.map((write) => settle(writer, write)));
      self.postMessage({ settled } satisfies FromThread);
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
