/** A signature costs about 100 µs to verify, twice as much as a whole read; a digest 1 µs. */
const TOKENS_MAX = 10_000;

/**
 * What became of tokens whose signature was verified, by the digest of the token. Tokens that are not
 * valid are not kept, so strangers can't fill it; where callers have more tokens than fit, the oldest are verified again.
 */
export class VerifiedTokens<Verified> {
  readonly #kept = new Map<string, Verified>();
  readonly #max: number;

  constructor(max = TOKENS_MAX) {
    this.#max = max;
  }

  get size(): number {
    return this.#kept.size;
  }

  get(digest: string): Verified | undefined {
    return this.#kept.get(digest);
  }

  keep(digest: string, verified: Verified): void {
    this.#kept.delete(digest);
    if (this.#kept.size >= this.#max) {
      const [oldest = ""] = this.#kept.keys();
      this.#kept.delete(oldest);
    }
    this.#kept.set(digest, verified);
  }

  drop(digest: string): void {
    this.#kept.delete(digest);
  }
}
