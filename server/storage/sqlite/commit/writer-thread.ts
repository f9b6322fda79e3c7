import { StoreUnavailable } from "../../customers/customer-store.ts";
import type { WriteRequest } from "../statements/writes.ts";
import type { BatchOutcome, Settled } from "./group-commit.ts";
import type { FromThread, SettledText, ThreadDatabase, ToThread } from "./writer-thread-worker.ts";

const RESTART_MS = 5_000;

/**
 * Commits batches in a thread of their own, so that neither a slow fsync nor a locked file holds up reads.
 *
 * Started with the store: one that had to be started under load found no file
 * descriptor left, and ended the process. One that dies takes its batch with
 * it: those writes fail as StoreUnavailable, and another thread is started.
 */
export class WriterThread {
  readonly #database: ThreadDatabase;
  readonly #onDeath: (reason: string) => void;
  #worker: Worker | null = null;
  #isReady = false;
  #isClosing = false;
  #whenStarted = Promise.withResolvers<void>();
  #batch: { resolve: (outcome: BatchOutcome) => void; reject: (error: unknown) => void } | null = null;

  /** @param onDeath called with a sentence when the thread died */
  constructor(database: ThreadDatabase, onDeath: (reason: string) => void) {
    this.#database = database;
    this.#onDeath = onDeath;
    this.#start();
  }

  /** Whether it can take a batch. */
  get isReady(): boolean {
    return this.#isReady;
  }

  /** Resolves when it can take a batch, or never will. */
  get started(): Promise<void> {
    return this.#whenStarted.promise;
  }

  /** One batch at a time. Fails with StoreUnavailable when the thread dies. */
  commit(writes: readonly WriteRequest[]): Promise<BatchOutcome> {
    return new Promise((resolve, reject) => {
      this.#batch = { resolve, reject };
      this.#worker?.ref();
      this.#worker?.postMessage(JSON.stringify(writes) satisfies ToThread);
    });
  }

  async close(): Promise<void> {
    this.#isClosing = true;
    const worker = this.#worker;
    if (worker === null) return;
    const closed = new Promise<void>((done) => {
      worker.addEventListener("close", () => done());
    });
    worker.ref();
    worker.postMessage("close" satisfies ToThread);
    await closed;
  }

  #start(): void {
    const worker = new Worker(new URL("./writer-thread-worker.ts", import.meta.url).href);
    // A process that is done must not wait for it, but for what it was given.
    worker.unref();
    this.#worker = worker;
    let reason = "it ended";
    worker.addEventListener("message", ({ data }: MessageEvent<FromThread>) => this.#hear(data));
    worker.addEventListener("error", ({ message }) => {
      reason = message;
    });
    worker.addEventListener("close", () => this.#died(reason));
    worker.postMessage(this.#database satisfies ToThread);
  }

  #hear(message: FromThread): void {
    if (message === "ready") {
      this.#isReady = true;
      this.#whenStarted.resolve();
      return;
    }
    const { settled, commit }: { settled: SettledText[]; commit: BatchOutcome["commit"] } =
      JSON.parse(message);
    const batch = this.#batch;
    this.#batch = null;
    this.#worker?.unref();
    batch?.resolve({ settled: settled.map(settledOf), commit });
  }

  #died(reason: string): void {
    const wasReady = this.#isReady;
    this.#worker = null;
    this.#isReady = false;
    this.#batch?.reject(new StoreUnavailable("the writer's thread ended", { isOutcomeUnknown: true }));
    this.#batch = null;
    this.#whenStarted.resolve();
    if (this.#isClosing) return;
    this.#onDeath(`The writer's thread ended (${reason}). Another is started.`);
    this.#whenStarted = Promise.withResolvers();
    // One that died before it could open the database would die again; meanwhile commits are inline.
    if (wasReady) this.#start();
    else setTimeout(() => this.#isClosing || this.#start(), RESTART_MS).unref();
  }
}

function settledOf(text: SettledText): Settled {
  if (text.ok) return text;
  const { message, isOutcomeUnknown } = text.error;
  const error =
    isOutcomeUnknown === undefined ? new Error(message) : new StoreUnavailable(message, { isOutcomeUnknown });
  return { ok: false, error };
}
