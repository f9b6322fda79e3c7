/** The writer's thread: its own connection, and a batch at a time in one transaction. */
import { StoreUnavailable } from "../customer-store.ts";
import { GroupCommit, type GroupCommitLimits, type Settled } from "./group-commit.ts";
import { connect } from "./sqlite-database.ts";
import { StatementCache } from "./statement-cache.ts";
import { applyWrite, type WriteRequest } from "./writer.ts";

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

/** The connection of this thread, and what writes on it. */
class Batches {
  readonly #db: ReturnType<typeof connect>;
  readonly #statements: StatementCache;
  readonly #groupCommit: GroupCommit;

  constructor(path: string, limits: GroupCommitLimits) {
    this.#db = connect(path);
    // The group commit waits for locks itself, so that its limit holds.
    this.#db.run("PRAGMA busy_timeout = 0");
    this.#statements = new StatementCache(this.#db);
    this.#groupCommit = new GroupCommit(this.#db, () => {}, limits);
  }

  async run(writes: readonly WriteRequest[]): Promise<SettledWrite[]> {
    const jobs = writes.map(
      ({ name, input }) =>
        () =>
          applyWrite(this.#statements, name, input),
    );
    return (await this.#groupCommit.runBatch(jobs)).map(asMessage);
  }

  async close(): Promise<void> {
    await this.#groupCommit.close();
    this.#statements.close();
    this.#db.close();
  }
}

function asMessage(settled: Settled): SettledWrite {
  if (settled.ok) return settled;
  const { error } = settled;
  return {
    ok: false,
    message: error instanceof Error ? error.message : String(error),
    isUnavailable: error instanceof StoreUnavailable,
  };
}

if (!Bun.isMainThread) {
  let batches: Batches | null = null;

  self.onmessage = async ({ data }: MessageEvent<ToThread>): Promise<void> => {
    if (typeof data === "string") {
      if (batches === null) throw new Error("the writer's thread was not opened");
      const settled = await batches.run(JSON.parse(data) as WriteRequest[]);
      self.postMessage(JSON.stringify(settled) satisfies FromThread);
    } else if (data.kind === "open") {
      batches = new Batches(data.path, data.limits);
    } else {
      await batches?.close();
      process.exit();
    }
  };
}
