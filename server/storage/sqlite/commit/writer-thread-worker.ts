/** The writer's thread: its own connection, and a batch at a time in one transaction. */
import { type DatabaseIdentity, FileGuard, requireFiles } from "../files/file-guard.ts";
import { connect } from "../files/sqlite-database.ts";
import { StatementCache } from "../statements/statement-cache.ts";
import { jobOf, type WriteRequest } from "../statements/writes.ts";
import { GroupCommit, type Settled } from "./group-commit.ts";

export type ThreadDatabase = {
  readonly path: string;
  readonly identity: DatabaseIdentity | null;
  readonly lockWaitMs: number;
  readonly cacheKib: number;
};

/**
 * First the database, then batches of {@link WriteRequest}s, last "close". A batch goes there
 * as JSON and its outcome comes back as JSON: objects take twice the time to clone.
 */
export type ToThread = ThreadDatabase | string;
/** "ready", then for each batch its BatchOutcome as JSON, with {@link SettledText}s. */
export type FromThread = string;
/** StoreUnavailable alone has isOutcomeUnknown. */
export type SettledText =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly error: { readonly message: string; readonly isOutcomeUnknown?: boolean } };

declare const self: Worker;

/** Takes batches on a connection of this thread. */
function openBatches({ path, identity, lockWaitMs, cacheKib }: ThreadDatabase) {
  if (identity !== null) requireFiles(path, identity);
  const db = connect(path, { cacheKib });
  const statements = new StatementCache(db);
  const groupCommit = new GroupCommit(db, new FileGuard(db, identity), lockWaitMs, () =>
    statements.chainEnds.clear(),
  );
  return {
    commit: async (writes: readonly WriteRequest[]): Promise<FromThread> => {
      const jobs = writes.map((write) => jobOf(statements, write));
      const { settled, commit } = await groupCommit.commit(jobs);
      return JSON.stringify({ settled: settled.map(textOf), commit });
    },
    close: (): void => {
      groupCommit.close();
      statements.close();
      db.close();
    },
  };
}

function textOf(settled: Settled): SettledText {
  if (settled.ok) return settled;
  const { error } = settled;
  return {
    ok: false,
    error: error instanceof Error ? { ...error, message: error.message } : { message: String(error) },
  };
}

if (!Bun.isMainThread) {
  let batches: ReturnType<typeof openBatches> | null = null;

  self.onmessage = async ({ data }: MessageEvent<ToThread>): Promise<void> => {
    if (typeof data !== "string") {
      batches = openBatches(data);
      self.postMessage("ready" satisfies FromThread);
    } else if (data === "close") {
      batches?.close();
      process.exit();
    } else {
      if (batches === null) throw new Error("the writer's thread was not opened");
      self.postMessage(await batches.commit(JSON.parse(data)));
    }
  };
}
