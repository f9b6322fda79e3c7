import type { GroupCommit } from "./group-commit.ts";
import type { StatementCache } from "./statement-cache.ts";
import { applyWrite, type WriteInput, type WriteName, type WriteResult, type Writer } from "./writer.ts";

/**
 * While little is going on a write is committed at once, in the turn that brought it; otherwise, and while another
 * process holds the lock, it goes to the writer's thread, where writes share commits.
 *
 * At once is not only the fastest for a lone write. Bun drops an answer that is still to come when the client half-closes
 * its connection or pipelines a further request: the write would be applied and nobody told. Under load that
 * remains so, for such clients.
 */
export class AdaptiveWriter implements Writer {
  readonly #statements: StatementCache;
  readonly #groupCommit: GroupCommit;
  readonly #others: Writer & { readonly isIdle: boolean };
  readonly #isBusy: () => boolean;

  /**
   * @param others takes what can't be written at once
   * @param isBusy whether so much is going on that an fsync in this thread would hold others up
   */
  constructor(
    statements: StatementCache,
    groupCommit: GroupCommit,
    others: Writer & { readonly isIdle: boolean },
    isBusy: () => boolean,
  ) {
    this.#statements = statements;
    this.#groupCommit = groupCommit;
    this.#others = others;
    this.#isBusy = isBusy;
  }

  run<Name extends WriteName>(name: Name, input: WriteInput<Name>): Promise<WriteResult<Name>> {
    const atOnce =
      this.#others.isIdle && !this.#isBusy()
        ? this.#groupCommit.tryNow(() => applyWrite(this.#statements, name, input))
        : null;
    return atOnce ?? this.#others.run(name, input);
  }

  async close(): Promise<void> {
    await this.#others.close();
    await this.#groupCommit.close();
    this.#statements.close();
  }
}
