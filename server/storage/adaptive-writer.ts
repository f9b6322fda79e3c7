import type { ImmediateCommit } from "./immediate-commit.ts";
import type { StatementCache } from "./statement-cache.ts";
import { applyWrite, type WriteInput, type WriteName, type WriteResult, type Writer } from "./writer.ts";
import type { WriterThread } from "./writer-thread.ts";

export type AdaptiveWriterParts = {
  readonly statements: StatementCache;
  readonly immediate: ImmediateCommit;
  /** Null for a database in memory: it can't be shared with a thread, and its commits wait for no disk. */
  readonly thread: WriterThread | null;
  /** Whether so much is going on that an fsync here would hold others up. */
  readonly isBusy: () => boolean;
  /** Runs after each commit, before anyone learns of it. */
  readonly beforeAnswers: () => void;
};

/**
 * While little is going on a write is committed at once, in the turn that brought it; otherwise, and while another
 * process holds the lock, it goes to the writer's thread, where writes share commits.
 *
 * At once is not only the fastest for a lone write. Bun drops an answer that is still to come when the client half-closes
 * its connection or pipelines a further request: the write would be applied and nobody told. Under load that
 * remains so, for such clients.
 */
export class AdaptiveWriter implements Writer {
  readonly #parts: AdaptiveWriterParts;

  constructor(parts: AdaptiveWriterParts) {
    this.#parts = parts;
  }

  async run<Name extends WriteName>(name: Name, input: WriteInput<Name>): Promise<WriteResult<Name>> {
    const { statements, immediate, thread, isBusy, beforeAnswers } = this.#parts;
    if (thread !== null && (!thread.isIdle || isBusy())) return thread.run(name, input);
    beforeAnswers(); // what is read in this turn from now on is read after this write
    const done = immediate.try(() => applyWrite(statements, name, input));
    if (done !== null) return done.value;
    if (thread === null) throw new Error("a database in memory was locked");
    return thread.run(name, input);
  }

  async close(): Promise<void> {
    await this.#parts.thread?.close();
    this.#parts.immediate.close();
    this.#parts.statements.close();
  }
}
