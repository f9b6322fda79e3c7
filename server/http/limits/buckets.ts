/**
 * Token buckets by the names of their holders: a time each, at which the bucket is full again. A full bucket
 * is the same as none, so those are forgotten when the table is full; if that is not enough, those that
 * were drawn from longest ago are.
 */
export class Buckets {
  readonly #fullAtMs = new Map<string, number>();
  readonly #max: number;

  /** @param max at most so many are kept; 10,000 take about 1 MiB */
  constructor(max = 10_000) {
    this.#max = max;
  }

  get size(): number {
    return this.#fullAtMs.size;
  }

  /** @returns undefined for a full bucket */
  fullAtMs(holder: string): number | undefined {
    return this.#fullAtMs.get(holder);
  }

  set(holder: string, fullAtMs: number, nowMs: number): void {
    // Taken out first, so that it stands behind those that were drawn from before.
    const isKnown = this.#fullAtMs.delete(holder);
    if (!isKnown && this.#fullAtMs.size >= this.#max) this.#makeRoom(nowMs);
    this.#fullAtMs.set(holder, fullAtMs);
  }

  /** Half of the room, so that not every new holder pays for the look at all. */
  #makeRoom(nowMs: number): void {
    for (const [holder, fullAtMs] of this.#fullAtMs) {
      if (fullAtMs <= nowMs) this.#fullAtMs.delete(holder);
    }
    for (const holder of this.#fullAtMs.keys()) {
      if (this.#fullAtMs.size <= this.#max / 2) return;
      this.#fullAtMs.delete(holder);
    }
  }
}
