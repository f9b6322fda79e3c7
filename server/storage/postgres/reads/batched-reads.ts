import { StoreUnavailable } from "../../customers/customer-store.ts";
import type { Param } from "../connection/lane.ts";
import type { LanePool } from "../connection/lane-pool.ts";
import { persist, unavailable } from "../connection/persistence.ts";
import type { StatementFailed } from "../connection/statement-failure.ts";
import { columnsOf } from "../rows/array-literal.ts";

/**
 * Maximum number of look-ups in a batch. So many are sent at once
 * and not at the end of the turn, which Bun's accept loop can delay.
 */
const BATCH_MAX = 64;

type ReadRow = { readonly n: number; readonly in_hot_standby: string };

type BatchedReadsParts = {
  readonly pool: LanePool;
  readonly giveUpMs: number;
  /** How many look-ups of a text may wait; further ones are refused at once. */
  readonly pendingMax: number;
  readonly onBatch: (lookUps: number, ms: number) => void;
  readonly onRetry: (failure: StatementFailed) => void;
};

/**
 * Look-ups. Those of one text that come in one turn of the event loop, or while all lanes are busy, share one
 * statement: for 64 at once that takes a third of the client's time.
 */
export class BatchedReads {
  readonly #parts: BatchedReadsParts;
  /** One for each text: the projections, and tokens. */
  readonly #texts = new Map<string, Gather>();

  constructor(parts: BatchedReadsParts) {
    this.#parts = parts;
  }

  /**
   * @param text takes an array for each value, and returns rows numbered from 1 in `n`
   * @returns the row of these values, or null. @throws StoreUnavailable
   */
  find<Row>(text: string, values: readonly Param[]): Promise<Row | null> {
    return this.#gatherOf(text).find(values, null) as Promise<Row | null>;
  }

  /** The same for one value; equal ones of a batch are one. */
  findShared<Row>(text: string, value: string): Promise<Row | null> {
    return this.#gatherOf(text).find([value], value) as Promise<Row | null>;
  }

  #gatherOf(text: string): Gather {
    return this.#texts.getOrInsertComputed(text, () => new Gather(text, this.#parts));
  }
}

type LookUp = {
  readonly giveUpAt: number;
  readonly values: readonly Param[];
  readonly found: Promise<ReadRow | null>;
  readonly resolve: (row: ReadRow | null) => void;
  readonly reject: (error: unknown) => void;
};

class Gather {
  readonly #text: string;
  readonly #parts: BatchedReadsParts;
  #waiting: LookUp[] = [];
  /** Those that wait, by the value that they share. */
  readonly #shared = new Map<string, LookUp>();
  #isScheduled = false;

  constructor(text: string, parts: BatchedReadsParts) {
    this.#text = text;
    this.#parts = parts;
  }

  find(values: readonly Param[], sharedBy: string | null): Promise<ReadRow | null> {
    const same = sharedBy === null ? undefined : this.#shared.get(sharedBy);
    if (same !== undefined) return same.found;
    if (this.#waiting.length >= this.#parts.pendingMax) {
      return Promise.reject(new StoreUnavailable("too many reads are waiting"));
    }
    const { promise: found, resolve, reject } = Promise.withResolvers<ReadRow | null>();
    const giveUpAt = performance.now() + this.#parts.giveUpMs;
    const lookUp = { giveUpAt, values, found, resolve, reject };
    this.#waiting.push(lookUp);
    if (sharedBy !== null) this.#shared.set(sharedBy, lookUp);
    if (this.#waiting.length % BATCH_MAX === 0) void this.#send();
    else this.#schedule();
    return found;
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      void this.#send();
    });
  }

  async #send(): Promise<void> {
    const { pool, giveUpMs, onBatch, onRetry } = this.#parts;
    // Taken when a lane is free: what arrives until then shares the batch.
    let batch: readonly LookUp[] | null = null;
    const read = (): Promise<readonly ReadRow[]> =>
      pool.use(async (lane) => {
        batch ??= this.#take();
        if (batch.length === 0) return [];
        const began = performance.now();
        const rows = await lane.run<ReadRow>(this.#text, columnsOf(batch.map(({ values }) => values)));
        if (rows[0]?.in_hot_standby === "on") throw lane.distrust(STANDBY);
        onBatch(batch.length, performance.now() - began);
        return rows;
      });
    try {
      const rows = await persist(read, { isRepeatable: true, giveUpMs, onRetry });
      const found = new Map(rows.map((row) => [row.n, row]));
      for (const [index, { resolve }] of this.#taken(batch).entries()) resolve(found.get(index + 1) ?? null);
    } catch (error) {
      for (const { reject } of this.#taken(batch)) reject(error);
    }
  }

  #take(): readonly LookUp[] {
    // Who asks from now on may have learned of a write that this statement does not see.
    this.#shared.clear();
    const now = performance.now();
    while ((this.#waiting[0]?.giveUpAt ?? Number.POSITIVE_INFINITY) <= now) {
      this.#waiting.shift()?.reject(unavailable(this.#parts.pool.late()));
    }
    return this.#waiting.splice(0, BATCH_MAX);
  }

  /** Nothing was taken where no lane could be had: then those that wait are refused. */
  #taken(batch: readonly LookUp[] | null): readonly LookUp[] {
    return batch ?? this.#take();
  }
}

const STANDBY = "the server has become a standby";
