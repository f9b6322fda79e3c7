import { StoreUnavailable } from "../customer-store.ts";
import type { GroupCommitLimits } from "./group-commit.ts";
import type { WriteInput, WriteName, WriteRequest, WriteResult, Writer } from "./writer.ts";
import type { FromThread, SettledWrite, ToThread } from "./writer-thread-worker.ts";

type Pending = WriteRequest & { resolve: (value: never) => void; reject: (error: unknown) => void };

/**
 * Writes in a thread of their own, so that neither an fsync nor a locked file holds up reads. One batch is under way
 * there, the next one gathers here; a lone write waits for no company.
 *
 * The thread is started by the first write. One that dies takes its batch with it: those writes fail as StoreUnavailable (each is wholly there or wholly
 * not), and the next batch gets a new thread.
 */
export class WriterThread implements Writer {
  readonly #path: string;
  readonly #limits: GroupCommitLimits;
  readonly #endReads: () => void;
  readonly #onDeath: (reason: string) => void;
  #worker: Worker | null = null;
  #pending: Pending[] = [];
  #underWay: Pending[] = [];
  #isGathering = false;
  #isClosed = false;
  #whenIdle: (() => void) | null = null;

  /**
   * @param endReads ends the reads under way: before a batch begins, and after it before anyone learns of it
   * @param onDeath told when the thread died
   */
  constructor(
    path: string,
    limits: GroupCommitLimits,
    endReads: () => void,
    onDeath: (reason: string) => void,
  ) {
    this.#path = path;
    this.#limits = limits;
    this.#endReads = endReads;
    this.#onDeath = onDeath;
  }

  /** Whether nothing is under way or waiting. */
  get isIdle(): boolean {
    return !this.#isGathering && this.#underWay.length === 0 && this.#pending.length === 0;
  }

  run<Name extends WriteName>(name: Name, input: WriteInput<Name>): Promise<WriteResult<Name>> {
    if (this.#isClosed) return Promise.reject(new StoreUnavailable("the store is closed"));
    if (this.#pending.length >= this.#limits.pendingMax) {
      return Promise.reject(new StoreUnavailable("too many writes are waiting"));
    }
    return new Promise((resolve, reject) => {
      this.#pending.push({ name, input, resolve, reject });
      if (this.#isGathering || this.#underWay.length > 0) return;
      this.#isGathering = true;
      setImmediate(() => this.#send());
    });
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    if (!this.isIdle) {
      await new Promise<void>((idle) => {
        this.#whenIdle = idle;
      });
    }
    const worker = this.#worker;
    if (worker === null) return;
    const closed = new Promise<void>((done) => {
      worker.addEventListener("close", () => done());
    });
    this.#worker = null;
    worker.postMessage({ kind: "close" } satisfies ToThread);
    await closed;
  }

  #start(): Worker {
    const worker = new Worker(new URL("./writer-thread-worker.ts", import.meta.url).href);
    worker.addEventListener("message", ({ data }: MessageEvent<FromThread>) =>
      this.#answer(JSON.parse(data) as SettledWrite[]),
    );
    let reason = "it ended";
    worker.addEventListener("error", ({ message }) => {
      reason = message;
    });
    worker.addEventListener("close", () => {
      if (worker === this.#worker) this.#died(reason);
    });
    worker.postMessage({ kind: "open", path: this.#path, limits: this.#limits } satisfies ToThread);
    return worker;
  }

  #send(): void {
    this.#isGathering = false;
    if (this.#pending.length === 0) return;
    this.#worker ??= this.#start();
    this.#underWay = this.#pending;
    this.#pending = [];
    const writes = this.#underWay.map(({ name, input }) => ({ name, input }));
    // The log of writes can't start anew while a read is under way.
    this.#endReads();
    this.#worker.postMessage(JSON.stringify(writes) satisfies ToThread);
  }

  #answer(settled: readonly SettledWrite[]): void {
    const batch = this.#underWay;
    this.#underWay = [];
    // What gathered meanwhile goes at once: it has waited for a whole batch already.
    this.#send();
    this.#endReads();
    batch.forEach(({ resolve, reject }, index) => {
      const result = settled[index];
      if (result?.ok) resolve(result.value as never);
      else reject(errorOf(result));
    });
    this.#wakeWhenIdle();
  }

  #died(reason: string): void {
    this.#worker = null;
    const batch = this.#underWay;
    this.#underWay = [];
    for (const { reject } of batch) reject(new StoreUnavailable("the writer's thread ended"));
    this.#onDeath(reason);
    this.#send();
    this.#wakeWhenIdle();
  }

  #wakeWhenIdle(): void {
    if (this.isIdle) this.#whenIdle?.();
  }
}

function errorOf(result: SettledWrite | undefined): Error {
  if (result === undefined || result.ok) return new Error("the writer's thread gave no answer");
  const { message, isUnavailable } = result;
  return isUnavailable ? new StoreUnavailable(message) : new Error(message);
}
