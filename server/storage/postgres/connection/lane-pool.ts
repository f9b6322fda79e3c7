import { StoreUnavailable } from "../../customers/customer-store.ts";
import type { Lane } from "./lane.ts";
import { StatementFailed } from "./statement-failure.ts";

type Waiting = {
  readonly giveUpAt: number;
  readonly resolve: (lane: Lane) => void;
  readonly reject: (error: unknown) => void;
};

/** Lanes of one purpose, each used by one caller at a time. */
export class LanePool {
  readonly #lanes: readonly Lane[];
  readonly #free: Lane[];
  readonly #waitingMax: number;
  #waiting: Waiting[] = [];
  /** What the last use failed with; null where it did not fail. */
  #fault: unknown = null;

  /** @param waitingMax how many callers may wait for a lane; further ones are refused at once */
  constructor(lanes: readonly Lane[], waitingMax: number) {
    this.#lanes = lanes;
    this.#free = [...lanes];
    this.#waitingMax = waitingMax;
  }

  /** How many lanes are in use. */
  get busy(): number {
    return this.#lanes.length - this.#free.length;
  }

  /** How many callers wait for one. */
  get waiting(): number {
    return this.#waiting.length;
  }

  /** Opens every lane. @throws StatementFailed */
  async connect(): Promise<void> {
    await Promise.all(this.#lanes.map((lane) => lane.connected()));
  }

  /**
   * @param giveUpAt after which it is refused where it still waits for a lane, by the clock of `performance.now`
   * @throws StoreUnavailable when too many wait; StatementFailed when its time is up; and what `work` throws
   */
  async use<T>(work: (lane: Lane) => Promise<T>, giveUpAt: number = Number.POSITIVE_INFINITY): Promise<T> {
    const lane = this.#free.pop() ?? (await this.#wait(giveUpAt));
    try {
      const result = await work(lane);
      this.#fault = null;
      return result;
    } catch (error) {
      this.#fault = error;
      throw error;
    } finally {
      this.#handOn(lane);
    }
  }

  /** What to refuse with where the time was up before there was a lane. */
  late(): StatementFailed {
    const reason = this.#fault instanceof Error ? `: ${this.#fault.message}` : "";
    return new StatementFailed("never-sent", `no connection was free in time${reason}`);
  }

  async close(): Promise<void> {
    await Promise.all(this.#lanes.map((lane) => lane.close()));
  }

  /** To the first whose time is not up: behind a locked table each try takes 3 s, and requests waited for 26 s. */
  #handOn(lane: Lane): void {
    let next = this.#waiting.shift();
    while (next !== undefined && performance.now() >= next.giveUpAt) {
      next.reject(this.late());
      next = this.#waiting.shift();
    }
    if (next === undefined) this.#free.push(lane);
    else next.resolve(lane);
  }

  #wait(giveUpAt: number): Promise<Lane> {
    if (this.#waiting.length >= this.#waitingMax) {
      return Promise.reject(new StoreUnavailable("too many requests wait for the database"));
    }
    return new Promise((resolve, reject) => this.#waiting.push({ giveUpAt, resolve, reject }));
  }
}
