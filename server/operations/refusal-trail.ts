import type { AuditStore } from "../storage/audit/audit-store.ts";

/**
 * Maximum number of reads for refusals, at once and in one turn of the event loop. Without it, 512 clients that
 * each sent stale tags left 3,379 reads waiting after 3 s, and the pages of their tenant behind them.
 */
const READS_MAX = 8;
/** A refusal waits no longer for the trail. */
const WAIT_MS = 250;

export type History = Pick<AuditStore, "history">;

/**
 * The audit trail for refusals, which can do without it: none waits for its turn. Further reads than
 * {@link READS_MAX} are not begun, and one that takes too long keeps its place until it ends.
 */
export class RefusalTrail {
  readonly #audit: History;
  readonly #waitMs: number;
  #reads = 0;

  constructor(audit: History, waitMs = WAIT_MS) {
    this.#audit = audit;
    this.#waitMs = waitMs;
  }

  /** @returns null also where the trail is busy, fails, or does not answer in time */
  async find<Found>(search: (audit: History) => Promise<Found | null>): Promise<Found | null> {
    if (this.#reads >= READS_MAX) return null;
    this.#reads += 1;
    const found = search(this.#audit)
      .catch(() => null)
      .finally(() => setImmediate(() => (this.#reads -= 1)));
    return Promise.race([found, Bun.sleep(this.#waitMs).then(() => null)]);
  }
}
