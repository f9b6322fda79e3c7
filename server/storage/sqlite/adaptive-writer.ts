import type { GroupCommit } from "./group-commit.ts";
import type { StatementCache } from "./statement-cache.ts";
import { applyWrite, type WriteInput, type WriteName, type WriteResult, type Writer } from "./writer.ts";

/** More than anyone pipelines, and at a millisecond each no wait that would be noticed. */
const TURN_WRITES_MAX = 8;
/** So many writes in one turn are a crowd, which gains by sharing commits; it is taken to last for a while. */
const CROWD_WRITES = 3;
const CROWD_MS = 10;

/**
 * While little is going on a write is committed at once, in the turn that brought it; otherwise, and while another
 * process holds the lock, it goes to the writer's thread, where writes share commits.
 *
 * A few writes a turn, no more: Bun accepts connections for as long as new ones come, all in one turn, and clients
 * that are answered within it come again. Signals, timers and the end of shared reads would wait for ever.
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
  #writesInTurn = 0;
  /** Under way in the thread, or waiting for it. */
  #shared = 0;
  #isCrowd = false;
  #crowdedAt = Number.NEGATIVE_INFINITY;

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
    const isLone = this.#isLone();
    this.#countInTurn();
    const atOnce = isLone ? this.#groupCommit.tryNow(() => applyWrite(this.#statements, name, input)) : null;
    return atOnce ?? this.#share(name, input);
  }

  #share<Name extends WriteName>(name: Name, input: WriteInput<Name>): Promise<WriteResult<Name>> {
    this.#shared += 1;
    if (this.#shared >= CROWD_WRITES) this.#isCrowd = true;
    const settle = (): void => {
      this.#shared -= 1;
      // Those who are answered come again: a crowd lasts from its last answer on.
      if (this.#isCrowd) this.#crowdedAt = performance.now();
      if (this.#shared === 0) this.#isCrowd = false;
    };
    const answer = this.#others.run(name, input);
    answer.then(settle, settle);
    return answer;
  }

  #isLone(): boolean {
    if (!this.#others.isIdle || this.#writesInTurn >= TURN_WRITES_MAX || this.#isBusy()) return false;
    return performance.now() - this.#crowdedAt > CROWD_MS;
  }

  #countInTurn(): void {
    if (this.#writesInTurn === 0) setImmediate(() => this.#endTurn());
    this.#writesInTurn += 1;
  }

  #endTurn(): void {
    if (this.#writesInTurn >= CROWD_WRITES) this.#crowdedAt = performance.now();
    this.#writesInTurn = 0;
  }

  async close(): Promise<void> {
    await this.#others.close();
    await this.#groupCommit.close();
    this.#statements.close();
  }
}
