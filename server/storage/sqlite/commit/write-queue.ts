import { StoreUnavailable } from "../../customer-store.ts";
import { type Commit, LOCK_WAIT_MS } from "../../storage.ts";
import type { StatementCache } from "../statements/statement-cache.ts";
import {
  applyWrite,
  type WriteInput,
  type WriteName,
  type WriteRequest,
  type WriteResult,
} from "../statements/writes.ts";
import type { CommitTimes, GroupCommit, Settled } from "./group-commit.ts";
import type { Committed, WriterThread } from "./writer-thread.ts";

export type WriteLimits = {
  /** How long a batch waits for a lock that another process holds. */
  readonly lockWaitMs: number;
  /** How many writes may wait; further ones are refused at once. */
  readonly pendingMax: number;
};

export const WRITE_LIMITS: WriteLimits = { lockWaitMs: LOCK_WAIT_MS, pendingMax: 10_000 };

/**
 * Bun accepts connections for as long as new ones come, all in one turn of the
 * event loop. So many writes are committed at once in one turn; then they gather
 * for its end, so that timers and signals run even during a connection storm.
 */
const TURN_WRITES_MAX = 8;
/**
 * Clients that were answered together come again together,
 * within about this time: their writes gather from the start.
 */
const BURST_MS = 10;

/**
 * Where the next batch is committed follows from how long the last COMMIT took, nearly all of it
 * fsync. Up to this it is inline, and a write is answered in the turn that brought it. Above, the
 * thread keeps reads going. Beside 8 writers and a 2 ms fsync, the median read waited 1.4 ms with
 * inline commits and 0 ms with the thread; the thread made 1,469 writes/s, inline 1,116. With
 * 20 ms, 4 s gave 1,068 reads inline and 3,999 with the thread.
 */
const INLINE_COMMIT_MS_MAX = 2;

/** The statements of a batch hold up reads too: 25 µs a write, so 5 ms for this many. More go to the thread. */
const INLINE_WRITES_MAX = 200;

type Pending = WriteRequest & { resolve: (value: never) => void; reject: (error: unknown) => void };

type WriteQueueParts = {
  readonly statements: StatementCache;
  readonly groupCommit: GroupCommit;
  /** Null where every commit is inline. */
  readonly thread: WriterThread | null;
  /** For tests that need one of the two places; null to let the measured commit time decide. */
  readonly chooseWhere: (() => Commit["where"]) | null;
  /** Ends the reads under way: the log cannot start anew beside one. */
  readonly endReads: () => void;
  readonly onCommit: (commit: Commit) => void;
  readonly limits: WriteLimits;
};

/**
 * Every write passes here, one batch at a time. A write that comes alone is committed at
 * once, in the turn that brought it: that is fastest, and Bun drops an answer that is
 * still to come when its client half-closes the connection or pipelines a further request.
 * In a burst, and while a batch is under way, writes gather and share one commit.
 */
export class WriteQueue {
  readonly #parts: WriteQueueParts;
  #pending: Pending[] = [];
  #underWay = 0;
  #draining: Promise<void> | null = null;
  #turnWrites = 0;
  #burstUntil = Number.NEGATIVE_INFINITY;
  #lastCommitMs = 0;
  #isClosed = false;

  constructor(parts: WriteQueueParts) {
    this.#parts = parts;
  }

  /** How many writes wait, or are under way. */
  get depth(): number {
    return this.#pending.length + this.#underWay;
  }

  /** Resolves when commits can be made wherever they are to be. */
  get ready(): Promise<void> {
    return this.#parts.thread?.started ?? Promise.resolve();
  }

  /**
   * @returns the write's value once it is durable; fails
   *   with StoreUnavailable, or with the write's own error
   */
  run<Name extends WriteName>(name: Name, input: WriteInput<Name>): Promise<WriteResult<Name>> {
    if (this.#isClosed) return Promise.reject(new StoreUnavailable("the store is closed"));
    if (this.#pending.length >= this.#parts.limits.pendingMax) {
      return Promise.reject(new StoreUnavailable("too many writes are waiting"));
    }
    const settled = this.#isLone() ? this.#tryAtOnce({ name, input }) : null;
    if (settled !== null) {
      return settled.ok ? Promise.resolve(settled.value as WriteResult<Name>) : Promise.reject(settled.error);
    }
    return new Promise((resolve, reject) => {
      this.#pending.push({ name, input, resolve, reject });
      this.#draining ??= this.#drain();
    });
  }

  /** Finishes the writes that were taken. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#draining;
    await this.#parts.thread?.close();
    this.#parts.groupCommit.close();
    this.#parts.statements.close();
  }

  #isLone(): boolean {
    if (this.#draining !== null || performance.now() < this.#burstUntil) return false;
    if (this.#turnWrites === 0) {
      setImmediate(() => {
        this.#turnWrites = 0;
      });
    }
    this.#turnWrites += 1;
    return this.#turnWrites <= TURN_WRITES_MAX && this.#where(1) === "inline";
  }

  /** @returns null, with nothing done, while another connection holds the lock */
  #tryAtOnce(write: WriteRequest): Settled | null {
    try {
      // The log of writes cannot start anew while a read is under way, and would grow without end.
      this.#parts.endReads();
      const settled = this.#parts.groupCommit.tryOne(this.#job(write));
      if (settled?.ok) this.#note(1, this.#parts.groupCommit.lastCommit, "inline");
      return settled;
    } catch (error) {
      return { ok: false, error };
    }
  }

  async #drain(): Promise<void> {
    await nextTurn();
    while (this.#pending.length > 0) {
      const batch = this.#pending;
      this.#pending = [];
      this.#underWay = batch.length;
      const where = this.#where(batch.length);
      const settled = await this.#commit(batch, where);
      this.#underWay = 0;
      if (batch.length > 1) this.#burstUntil = performance.now() + BURST_MS;
      batch.forEach(({ resolve, reject }, index) => {
        const result = settled[index];
        if (result?.ok) resolve(result.value as never);
        else reject(result?.error);
      });
      // Clients that were answered may have sent their next write: let it arrive before the
      // next batch. What gathered beside the thread has waited for a whole batch already.
      if (where === "inline") await nextTurn();
    }
    this.#draining = null;
  }

  async #commit(batch: readonly WriteRequest[], where: Commit["where"]): Promise<Settled[]> {
    try {
      this.#parts.endReads();
      const { settled, last } = await (where === "thread"
        ? this.#commitInThread(batch)
        : this.#commitInline(batch));
      this.#note(countOk(settled), last, where);
      return settled;
    } catch (error) {
      // The thread died with the batch, or this program failed: each write is wholly there or wholly not.
      return batch.map(() => ({ ok: false, error }));
    }
  }

  async #commitInline(batch: readonly WriteRequest[]): Promise<Committed> {
    const { groupCommit } = this.#parts;
    const settled = await groupCommit.commit(batch.map((write) => this.#job(write)));
    return { settled, last: groupCommit.lastCommit };
  }

  async #commitInThread(batch: readonly WriteRequest[]): Promise<Committed> {
    const requests = batch.map(({ name, input }) => ({ name, input }));
    return (await this.#parts.thread?.commit(requests)) ?? NEVER_SENT;
  }

  #where(writes: number): Commit["where"] {
    const { thread, chooseWhere } = this.#parts;
    if (!thread?.isReady) return "inline";
    if (chooseWhere !== null) return chooseWhere();
    const isShort = this.#lastCommitMs <= INLINE_COMMIT_MS_MAX && writes <= INLINE_WRITES_MAX;
    return isShort ? "inline" : "thread";
  }

  #note(writes: number, last: CommitTimes | null, where: Commit["where"]): void {
    if (last === null) return;
    this.#lastCommitMs = last.commitMs;
    this.#parts.onCommit({ writes, ms: last.ms, where });
  }

  #job({ name, input }: WriteRequest): () => unknown {
    return () => applyWrite(this.#parts.statements, name, input);
  }
}

const NEVER_SENT: Committed = { settled: [], last: null };

function countOk(settled: readonly Settled[]): number {
  return settled.reduce((count, { ok }) => count + Number(ok), 0);
}

function nextTurn(): Promise<void> {
  return new Promise((next) => setImmediate(next));
}
