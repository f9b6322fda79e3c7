import { StoreUnavailable } from "../storage/customers/customer-store.ts";
import { withinTime } from "./within-time.ts";

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
