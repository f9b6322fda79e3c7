import { isExpected } from "../../../domain/precondition.ts";
import { StoreUnavailable } from "../../customers/customer-store.ts";
import type { Commit } from "../../storage.ts";
import type { LanePool } from "../connection/lane-pool.ts";
import { retryDelayMs, unavailable, unknownOutcome } from "../connection/persistence.ts";
import { StatementFailed } from "../connection/statement-failure.ts";
import type { Outcome, QueuedWrite } from "./queued-write.ts";
import { type AttemptResult, attempt, look, resultOf, type Tried } from "./write-attempt.ts";

/** A larger batch gains nothing, and holds its locks longer. */
const BATCH_MAX = 64;
/** After so many tries in company a write is tried alone: one of the batch may be what the server refuses. */
const BATCH_TRIES_MAX = 3;

type Waiting = Tried & {
  readonly resolve: (outcome: Outcome) => void;
  readonly reject: (error: unknown) => void;
  readonly giveUpAt: number;
  /** The number of the batch that was sent last when it came. */
  readonly cameAfter: number;
  wasUnknown: boolean;
  tries: number;
};

type WriteBatchesParts = {
  readonly lanes: LanePool;
  /** For writes that wait for a row which another session holds, and for those that are tried alone. */
  readonly slowLanes: LanePool;
  /** How many batches may be under way. */
  readonly batchesMax: number;
  readonly giveUpMs: number;
  readonly pendingMax: number;
  readonly onCommit: (commit: Commit) => void;
  readonly onRetry: (failure: StatementFailed) => void;
};

/**
 * Every write on customers passes here. Those that came in one turn of the
 * event loop, or while the lanes were busy, share a statement and so a commit.
 * Each of a batch has a target of its own, so that their order does not matter.
 */
export class WriteBatches {
  readonly #parts: WriteBatchesParts;
  #waiting: Waiting[] = [];
  #taken = 0;
  #batchesUnderWay = 0;
  #batchNumber = 0;
  #isScheduled = false;
  #isClosed = false;
  /** Targets of the writes under way. */
  readonly #busy = new Set<string>();
  #onIdle = (): void => {};

  constructor(parts: WriteBatchesParts) {
    this.#parts = parts;
  }

  /** How many writes wait, or are under way. */
  get depth(): number {
    return this.#waiting.length + this.#taken;
  }

  /** @returns the write's outcome once it is durable. @throws StoreUnavailable */
  run<Result extends Outcome>(write: QueuedWrite): Promise<Result> {
    if (this.#isClosed) return Promise.reject(new StoreUnavailable("the store is closed"));
    if (this.depth >= this.#parts.pendingMax) {
      return Promise.reject(new StoreUnavailable("too many writes are waiting"));
    }
    const giveUpAt = performance.now() + this.#parts.giveUpMs;
    const cameAfter = this.#batchNumber;
    return new Promise((resolve, reject) => {
      const settle = (outcome: Outcome): void => resolve(outcome as Result);
      this.#waiting.push({
        write,
        resolve: settle,
        reject,
        giveUpAt,
        cameAfter,
        wasUnknown: false,
        tries: 0,
      });
      // Bun's accept loop can hold back the turn's end.
      if (this.#waiting.length % BATCH_MAX === 0) this.#pump();
      else this.#schedule();
    });
  }

  /** Finishes the writes that were taken. */
  async close(): Promise<void> {
    this.#isClosed = true;
    if (this.depth === 0) return;
    await new Promise<void>((resolve) => {
      this.#onIdle = resolve;
    });
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      this.#pump();
    });
  }

  #pump(): void {
    this.#refuseLate();
    while (this.#batchesUnderWay < this.#parts.batchesMax) {
      const batch = this.#take();
      if (batch.length === 0) return;
      void this.#send(batch);
    }
  }

  /** Those whose time is up while they wait, for a batch or for a write before them on their target. */
  #refuseLate(): void {
    const now = performance.now();
    this.#waiting = this.#waiting.filter(({ giveUpAt, wasUnknown, reject }) => {
      if (now < giveUpAt) return true;
      reject(gaveUp(this.#parts.lanes.late(), wasUnknown));
      return false;
    });
    if (this.depth === 0) this.#onIdle();
  }

  /** The first that can be sent, and others of its kind. A second write on a target waits for the first. */
  #take(): Waiting[] {
    const batch: Waiting[] = [];
    const rest: Waiting[] = [];
    for (const waiting of this.#waiting) {
      const { kind, lockKey, target } = waiting.write;
      const isOfBatch = batch.length < BATCH_MAX && (batch[0]?.write.kind ?? kind) === kind;
      if (!isOfBatch || (target !== null && this.#busy.has(lockKey))) {
        rest.push(waiting);
        continue;
      }
      if (target !== null) this.#busy.add(lockKey);
      batch.push(waiting);
    }
    this.#waiting = rest;
    this.#taken += batch.length;
    if (batch.length > 0) this.#batchNumber += 1;
    return batch.sort((one, other) => (one.write.lockKey < other.write.lockKey ? -1 : 1));
  }

  async #send(batch: readonly Waiting[]): Promise<void> {
    this.#batchesUnderWay += 1;
    const number = this.#batchNumber;
    try {
      const results = await this.#parts.lanes.use((lane) => this.#timed(attempt(lane, batch, false)));
      for (const [index, waiting] of batch.entries()) this.#conclude(waiting, results[index], number);
    } catch (error) {
      for (const waiting of batch) void this.#afterFailure(waiting, error, batch.length);
    } finally {
      this.#batchesUnderWay -= 1;
      this.#pump();
    }
  }

  #conclude(waiting: Waiting, result: AttemptResult | undefined, batchNumber = Number.NaN): void {
    if (result === undefined || result.kind === "held") void this.#sendAlone(waiting);
    else if (result.kind === "unknown")
      this.#finish(waiting, () => waiting.reject(new StoreUnavailable(LOST, { isOutcomeUnknown: true })));
    else {
      if (result.isApplied) this.#refuseThoseBehind(waiting, batchNumber);
      this.#finish(waiting, () => waiting.resolve(result.outcome));
    }
  }

  /**
   * Writers that compete for one row would each need a statement to learn that
   * they lost. Those that were there before the winner's statement was sent were
   * under way when its version was the current one, which is not what they expect.
   */
  #refuseThoseBehind({ write: { target, lockKey, next } }: Waiting, batchNumber: number): void {
    if (target === null || next === null) return;
    this.#waiting = this.#waiting.filter(({ write, cameAfter, wasUnknown, resolve }) => {
      const isBehind =
        write.lockKey === lockKey && cameAfter < batchNumber && write.key === null && !wasUnknown;
      if (!isBehind || write.target === null || isExpected(write.target.expected, next)) return true;
      resolve({ kind: "stale", rowVersion: next });
      return false;
    });
  }

  /** One write, which waits for its row as long as the session's lock_timeout lets it. */
  async #sendAlone(waiting: Waiting): Promise<void> {
    try {
      const [result] = await this.#parts.slowLanes.use(
        (lane) => this.#timed(attempt(lane, [waiting], true)),
        waiting.giveUpAt,
      );
      if (result?.kind === "held") throw new StatementFailed("rolled-back", "another session holds the row");
      this.#conclude(waiting, result);
    } catch (error) {
      await this.#afterFailure(waiting, error, 1);
    }
  }

  async #afterFailure(waiting: Waiting, error: unknown, batchSize: number): Promise<void> {
    const refuse = (reason: unknown): void => this.#finish(waiting, () => waiting.reject(reason));
    if (!(error instanceof StatementFailed)) return refuse(error);
    const { write } = waiting;
    if (error.kind === "refused" && batchSize === 1 && !isKeyTaken(error, write)) return refuse(error);
    if (error.kind === "unknown" && !write.isRepeatable) return refuse(unknownOutcome(error));
    if (error.kind === "unknown") waiting.wasUnknown = true;
    if (performance.now() >= waiting.giveUpAt) return refuse(gaveUp(error, waiting.wasUnknown));
    waiting.tries += 1;
    this.#parts.onRetry(error);
    if (error.kind === "refused" && batchSize === 1) return await this.#lookAtKey(waiting);
    if (error.kind !== "refused") await Bun.sleep(retryDelayMs(waiting.tries));
    const isBetterAlone =
      error.kind === "refused" || (error.kind === "rolled-back" && waiting.tries >= BATCH_TRIES_MAX);
    if (isBetterAlone || batchSize === 1) return await this.#sendAlone(waiting);
    this.#again(waiting);
  }

  /** Puts it back in front of those that came later. */
  #again(waiting: Waiting): void {
    if (waiting.write.target !== null) this.#busy.delete(waiting.write.lockKey);
    this.#taken -= 1;
    this.#waiting.unshift(waiting);
    this.#schedule();
  }

  /**
   * The server refused the statement since a key is kept:
   * it holds the outcome, or belongs to another request.
   */
  async #lookAtKey(waiting: Waiting): Promise<void> {
    try {
      const result = await this.#parts.slowLanes.use(async (lane) => {
        const [verdict = { kind: "held" as const }] = await look(lane, [waiting]);
        return await resultOf(lane, waiting.write, verdict);
      }, waiting.giveUpAt);
      if (result.kind !== "held") return this.#conclude(waiting, result);
      // It has expired meanwhile, or was never committed.
      await Bun.sleep(retryDelayMs(waiting.tries));
      await this.#sendAlone(waiting);
    } catch (error) {
      await this.#afterFailure(waiting, error, 1);
    }
  }

  async #timed(attempted: Promise<AttemptResult[]>): Promise<AttemptResult[]> {
    const began = performance.now();
    const results = await attempted;
    const writes = results.filter((result) => result.kind === "settled" && result.isApplied).length;
    if (writes > 0) this.#parts.onCommit({ writes, ms: performance.now() - began, where: "server" });
    return results;
  }

  #finish({ write }: Waiting, answer: () => void): void {
    if (write.target !== null) this.#busy.delete(write.lockKey);
    this.#taken -= 1;
    answer();
    if (this.depth === 0) this.#onIdle();
    else this.#schedule();
  }
}

function gaveUp(failure: StatementFailed, wasUnknown: boolean): StoreUnavailable {
  return wasUnknown ? unknownOutcome(failure) : unavailable(failure);
}

const LOST = "the answer to the write was lost; the write may have been applied";

/** A kept key made a NULL (not_null_violation), or two writes of one batch have the same key. */
function isKeyTaken({ sqlState }: StatementFailed, { key }: QueuedWrite): boolean {
  return key !== null && (sqlState === "23502" || sqlState === "23505" || sqlState === "21000");
}
