import { networkOf } from "../../domain/network/network.ts";

const HOUR_MS = 3_600_000;
/** After a use could not be noted. A full disk would otherwise cost every GET a write that fails. */
const RETRY_MS = 60_000;
/** How many tokens are remembered as used in this hour. */
const NOTED_MAX = 10_000;

export type TokenUse = {
  readonly digest: string;
  readonly hourMs: number;
  /** The network of the caller's address; null where it is unknown. */
  readonly from: string | null;
};

/**
 * Notes when tokens were last used, to the hour, and from where, so that a token costs one write
 * an hour. It is a hint for operators: a note that fails does not fail the request.
 */
export class TokenUseNotes {
  readonly #write: (use: TokenUse) => Promise<unknown>;
  /** The tokens whose use in this hour was noted here. */
  #noted = { hourMs: 0, digests: new Set<string>() };
  #retryAtMs = 0;
  readonly #underWay = new Set<Promise<void>>();

  constructor(write: (use: TokenUse) => Promise<unknown>) {
    this.#write = write;
  }

  /** @param lastUsedAtMs as the store has it; 0 for never */
  note(digest: string, lastUsedAtMs: number, nowMs: number, address: string | undefined): void {
    const hourMs = nowMs - (nowMs % HOUR_MS);
    if (lastUsedAtMs >= hourMs || nowMs < this.#retryAtMs) return;
    if (this.#noted.hourMs !== hourMs || this.#noted.digests.size >= NOTED_MAX) {
      this.#noted = { hourMs, digests: new Set() };
    }
    const { digests } = this.#noted;
    if (digests.has(digest)) return;
    digests.add(digest);
    const from = address === undefined ? null : networkOf(address);
    const note = this.#write({ digest, hourMs, from }).then(
      () => {},
      () => {
        digests.delete(digest);
        this.#retryAtMs = nowMs + RETRY_MS;
      },
    );
    this.#underWay.add(note);
    void note.then(() => this.#underWay.delete(note));
  }

  /** Waits for the notes under way. */
  async finish(): Promise<void> {
    await Promise.all(this.#underWay);
  }
}
