import { setImmediate as nextTurn } from "node:timers/promises";
import { StoreUnavailable } from "../../customers/customer-store.ts";
import { type Commit, LOCK_WAIT_MS } from "../../storage.ts";
import type { StatementCache } from "../statements/statement-cache.ts";
import {
  isOfCustomers,
  jobOf,
  type WriteInput,
  type WriteName,
  type WriteRequest,
  type WriteResult,
} from "../statements/writes.ts";
import type { BatchOutcome, GroupCommit, Settled } from "./group-commit.ts";
import type { WriterThread } from "./writer-thread.ts";

export type WriteLimits = {
  /** How long a batch waits for a lock that another process holds. */
  readonly lockWaitMs: number;
  /** How many writes may wait; further ones are refused at once. */
  readonly pendingMax: number;
};

export const WRITE_LIMITS: WriteLimits = { lockWaitMs: LOCK_WAIT_MS, pendingMax: 10_000 };

/**
 * Maximum number of writes that one turn of the event loop commits alone; further ones gather for the end
 * of the turn and share one commit. A burst of 64 writes holds the loop for 9 to 12 ms with this limit, and
 * for 24 ms without one, since all 64 are committed alone. A limit of 1 holds it for 2 ms, but then a client
 * that pipelines two writes gets no reply to the second: Bun drops one that comes in a later turn.
 */
const TURN_WRITES_MAX = 8;
/**
 * Clients that were answered together come again together, within about this time: their writes gather
 * from the start. With an fsync of 0.5 ms, 4 clients made 1,985 writes/s with it
 * and 770 without, 16 clients 4,757 and 2,772, and 64 clients 8,384 and 6,170.
 */
const BURST_MS = 10;

/**
 * A batch is committed inline while the last COMMIT took no longer than this; then reads wait no
 * longer either, and a write is answered in the turn that brought it. Otherwise the thread commits it,
 * and reads go on. Beside 8 writers and a 2 ms fsync, the median read waited 1.4 ms with inline commits
 * and 0 ms with the thread; the thread made 1,469 writes/s, inline commits 1,116. With a 20 ms fsync,
 * 1,068 reads were answered in 4 s beside inline commits, and 3,999 beside the thread.
 */
const INLINE_COMMIT_MS_MAX = 2;
/**
 * A batch of more writes goes to the thread: this one answers and reads requests meanwhile, on another core. On two
 * cores, of which the clients took one, 16 to 128 clients made 1.2 times as many writes as with a limit of 200. Fewer
 * clients make smaller batches, and gained nothing from the thread.
 */
const INLINE_WRITES_MAX = 16;
/**
 * After such a batch smaller ones go to the thread too, for longer than the clients take to come again: where the
 * threads take turns, each reads anew the pages that the other one has changed.
 */
const LARGE_MS = 50;

type Pending = WriteRequest & { resolve: (value: never) => void; reject: (error: unknown) => void };

type WriteQueueParts = {
  readonly statements: StatementCache;
  readonly groupCommit: GroupCommit;
  /** Null where every commit is inline. */
  readonly thread: WriterThread | null;
  /** For tests that need one of the two places; null to let the measured commit time decide. */
  readonly chooseWhere: (() => Commit["where"]) | null;
  /**
   * The reads under way end before each commit: SQLite starts the write-ahead log anew only while
   * nobody reads, and in a long turn there would always be a reader, so it would grow without end.
   */
  readonly read: { end(): void; endForOwnCommit(): () => void };
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
  #largeUntil = Number.NEGATIVE_INFINITY;
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
    const write = { name, input };
    const settled = this.#mayCommitAlone() ? this.#commitOne(write) : null;
    if (settled !== null) {
      return settled.ok ? Promise.resolve(settled.value as WriteResult<Name>) : Promise.reject(settled.error);
    }
    return new Promise((resolve, reject) => {
      this.#pending.push({ ...write, resolve, reject });
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

  #mayCommitAlone(): boolean {
    return (
      this.#draining === null &&
      performance.now() >= this.#burstUntil &&
      this.#turnWrites < TURN_WRITES_MAX &&
      this.#threadFor(1) === null
    );
  }

  /** @returns null, with nothing done, while another connection holds the lock */
  #commitOne(write: WriteRequest): Settled | null {
    if (this.#turnWrites === 0) {
      setImmediate(() => {
        this.#turnWrites = 0;
      });
    }
    this.#turnWrites += 1;
    try {
      const { read, groupCommit, statements } = this.#parts;
      const keepEpoch = read.endForOwnCommit();
      const outcome = groupCommit.tryOne(jobOf(statements, write));
      if (outcome === null) return null;
      // A client that writes alone need not have its token looked up after each of its own writes.
      if (outcome.commit !== null && isOfCustomers(write.name)) keepEpoch();
      return this.#noted(outcome, "inline")[0] ?? null;
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
      const thread = this.#threadFor(batch.length);
      const settled = await this.#commitBatch(batch, thread);
      this.#underWay = 0;
      if (batch.length > 1) this.#burstUntil = performance.now() + BURST_MS;
      if (batch.length > INLINE_WRITES_MAX) this.#largeUntil = performance.now() + LARGE_MS;
      batch.forEach(({ resolve, reject }, index) => {
        const result = settled[index];
        if (result?.ok) resolve(result.value as never);
        else reject(result?.error);
      });
      // Clients that were answered may have sent their next write: let it arrive before the
      // next batch. What gathered beside the thread has waited for a whole batch already.
      if (thread === null) await nextTurn();
    }
    this.#draining = null;
  }

  /** Never fails: an error that belongs to no single write refuses the whole batch, and the next one follows. */
  async #commitBatch(
    batch: readonly WriteRequest[],
    thread: WriterThread | null,
  ): Promise<readonly Settled[]> {
    try {
      this.#parts.read.end();
      if (thread === null) {
        const jobs = batch.map((write) => jobOf(this.#parts.statements, write));
        return this.#noted(await this.#parts.groupCommit.commit(jobs), "inline");
      }
      const requests = batch.map(({ name, input }) => ({ name, input }));
      return this.#noted(await thread.commit(requests), "thread");
    } catch (error) {
      return batch.map(() => ({ ok: false, error }));
    }
  }

  /**
   * @returns the thread where it is to commit a batch of so many writes, or null for
   *   inline: so is everything while there is no thread (in memory, or after it died)
   */
  #threadFor(writes: number): WriterThread | null {
    const { thread, chooseWhere } = this.#parts;
    if (!thread?.isReady) return null;
    if (chooseWhere !== null) return chooseWhere() === "thread" ? thread : null;
    const isSmall = writes <= INLINE_WRITES_MAX && performance.now() >= this.#largeUntil;
    return isSmall && this.#lastCommitMs <= INLINE_COMMIT_MS_MAX ? null : thread;
  }

  #noted({ settled, commit }: BatchOutcome, where: Commit["where"]): readonly Settled[] {
    if (commit !== null) {
      this.#lastCommitMs = commit.commitMs;
      this.#parts.onCommit({ writes: commit.writes, ms: commit.ms, where });
    }
    return settled;
  }
}
