import { StoreUnavailable } from "../../customer-store.ts";
import type { Lane } from "./lane.ts";

/** Lanes of one purpose, each used by one caller at a time. */
export class LanePool {
  readonly #lanes: readonly Lane[];
  readonly #free: Lane[];
  readonly #waitingMax: number;
  #waiting: ((lane: Lane) => void)[] = [];

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

  /** @throws StoreUnavailable when too many wait, and what `work` throws */
  async use<T>(work: (lane: Lane) => Promise<T>): Promise<T> {
    const lane = this.#free.pop() ?? (await this.#wait());
    try {
      return await work(lane);
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#free.push(lane);
      else next(lane);
    }
  }

  async close(): Promise<void> {
    await Promise.all(this.#lanes.map((lane) => lane.close()));
  }

  #wait(): Promise<Lane> {
    if (this.#waiting.length >= this.#waitingMax) {
      return Promise.reject(new StoreUnavailable("too many requests wait for the database"));
    }
    return new Promise((resolve) => this.#waiting.push(resolve));
  }
}
