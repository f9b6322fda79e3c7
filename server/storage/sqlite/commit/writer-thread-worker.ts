/** The writer's thread: its own connection, and a batch at a time in one transaction. */
import { StoreUnavailable } from "../../customer-store.ts";
import { type DatabaseIdentity, FileGuard, requireFiles } from "../files/file-guard.ts";
import { connect } from "../files/sqlite-database.ts";
import { StatementCache } from "../statements/statement-cache.ts";
import { applyWrite, type WriteRequest } from "../statements/writes.ts";
import { GroupCommit, type Settled } from "./group-commit.ts";

/**
 * A batch of writes goes there as JSON ({@link WriteRequest}s)
 * and comes back as JSON: objects take twice the time to clone.
 */
export type ToThread =
  | string
  | {
      readonly kind: "open";
      readonly path: string;
      readonly identity: DatabaseIdentity | null;
      readonly lockWaitMs: number;
      readonly cacheKib: number;
    }
  | { readonly kind: "close" };

/** What is left of an error in JSON. `isOutcomeUnknown` is there for StoreUnavailable alone. */
export type ErrorText = { readonly message: string; readonly isOutcomeUnknown?: boolean };
export type SettledWrite =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly error: ErrorText };

/** "ready", or a BatchOutcome as JSON, with {@link SettledWrite}s in `settled`. */
export type FromThread = string;

declare const self: Worker;

/** The connection of this thread, and what writes on it. */
class Batches {
  readonly #db: ReturnType<typeof connect>;
  readonly #statements: StatementCache;
  readonly #groupCommit: GroupCommit;

  constructor({ path, identity, lockWaitMs, cacheKib }: Extract<ToThread, { kind: "open" }>) {
    if (identity !== null) requireFiles(path, identity);
    this.#db = connect(path, { cacheKib });
    this.#statements = new StatementCache(this.#db);
    this.#groupCommit = new GroupCommit(this.#db, new FileGuard(this.#db, identity), lockWaitMs);
  }

  async run(writes: readonly WriteRequest[]): Promise<FromThread> {
    const { settled, commit } = await this.#groupCommit.commit(
      writes.map(
        ({ name, input }) =>
          () =>
            applyWrite(this.#statements, name, input),
      ),
    );
    return JSON.stringify({ settled: settled.map(asMessage), commit });
  }

  close(): void {
    this.#groupCommit.close();
    this.#statements.close();
    this.#db.close();
  }
}

function asMessage(settled: Settled): SettledWrite {
  if (settled.ok) return settled;
  const { error } = settled;
  const message = error instanceof Error ? error.message : String(error);
  if (!(error instanceof StoreUnavailable)) return { ok: false, error: { message } };
  return { ok: false, error: { message, isOutcomeUnknown: error.isOutcomeUnknown } };
}

if (!Bun.isMainThread) {
  let batches: Batches | null = null;

  self.onmessage = async ({ data }: MessageEvent<ToThread>): Promise<void> => {
    if (typeof data === "string") {
      if (batches === null) throw new Error("the writer's thread was not opened");
      self.postMessage(await batches.run(JSON.parse(data) as WriteRequest[]));
    } else if (data.kind === "open") {
      batches = new Batches(data);
      self.postMessage("ready" satisfies FromThread);
    } else {
      batches?.close();
      process.exit();
    }
  };
}
