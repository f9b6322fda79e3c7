import { StoreUnavailable } from "../storage/customers/customer-store.ts";

/**
 * How long a scrape waits for the store. One that does not answer would otherwise keep
 * back the metrics that say so; what was known last counts then. Prometheus gives up after 10 s.
 */
const ANSWER_MS = 1_000;

/** What the store said last of something that scrapes show. */
export class LastAnswer<T> {
  readonly #askStore: () => Promise<T>;
  readonly #pauseMs: (tookMs: number) => number;
  #known: T;
  #underWay: Promise<void> | null = null;
  #askAt = Number.NEGATIVE_INFINITY;

  /** @param pauseMs for how long an answer is used, in ms, by how long it took */
  constructor(before: T, pauseMs: (tookMs: number) => number, askStore: () => Promise<T>) {
    this.#known = before;
    this.#pauseMs = pauseMs;
    this.#askStore = askStore;
  }

  async get(): Promise<T> {
    if (this.#underWay === null && performance.now() >= this.#askAt)
      this.#underWay = this.#ask().finally(() => {
        this.#underWay = null;
      });
    if (this.#underWay !== null) await withinTime(this.#underWay, undefined);
    return this.#known;
  }

  async #ask(): Promise<void> {
    const startedAt = performance.now();
    try {
      this.#known = await this.#askStore();
      const now = performance.now();
      this.#askAt = now + this.#pauseMs(now - startedAt);
    } catch (error) {
      // That the database does not answer is shown by requests and by the log.
      if (!(error instanceof StoreUnavailable)) throw error;
    }
  }
}

/** @returns `otherwise` where the store does not answer within {@link ANSWER_MS} */
export async function withinTime<T>(answer: Promise<T>, otherwise: T): Promise<T> {
  const { promise: late, resolve } = Promise.withResolvers<T>();
  const timer = setTimeout(() => resolve(otherwise), ANSWER_MS);
  return await Promise.race([answer, late]).finally(() => clearTimeout(timer));
}
