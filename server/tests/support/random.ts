/** How many times the usual number of random runs: `bun run torture` sets it. */
export const RUNS = Number(process.env["RUNS"] ?? 1);

/** Numbers that a seed repeats, and what tests draw with them. */
export class Random {
  readonly seed: number;
  #state: number;

  /** @param seed by default the environment's SEED, else a new one */
  constructor(seed = Number(process.env["SEED"] ?? Math.floor(Math.random() * 2 ** 31))) {
    this.seed = seed;
    this.#state = seed >>> 0;
  }

  /** mulberry32: @returns a number from 0 up to, not including, 1 */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), this.#state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  /** @returns a whole number from `low` to `high`, both possible */
  integer(low: number, high: number): number {
    return low + Math.floor(this.next() * (high - low + 1));
  }

  of<T>(choices: readonly [T, ...T[]]): T {
    return choices[this.integer(0, choices.length - 1)] ?? choices[0];
  }
}
