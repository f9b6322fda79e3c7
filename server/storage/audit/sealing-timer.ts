import { type AuditStore, SEALED_MAX } from "./audit-store.ts";

/** A row without a place in its chain is protected by triggers and grants alone. */
const EVERY_MS = 1_000;

/** Gives new rows of the audit trail their place, every second, and once more at the end. */
export class SealingTimer {
  readonly #audit: Pick<AuditStore, "seal">;
  readonly #onFailure: (error: unknown) => void;
  #timer: NodeJS.Timeout | undefined;
  #sealing: Promise<void> = Promise.resolve();
  readonly #everyMs: number;
  #isStopped = false;
  #hasFailed = false;

  /**
   * @param onFailure the rows stay as they are until the next turn. Called for the first of several failures in a row:
   *   a database that is away for an hour would be 3,600 of them
   */
  constructor(audit: Pick<AuditStore, "seal">, onFailure: (error: unknown) => void, everyMs = EVERY_MS) {
    this.#audit = audit;
    this.#onFailure = onFailure;
    this.#everyMs = everyMs;
    this.#schedule();
  }

  /** Call it after the last write, and before the store is closed. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    clearTimeout(this.#timer);
    await this.#sealing;
    await this.#seal();
  }

  #schedule(): void {
    this.#timer = setTimeout(() => {
      this.#sealing = this.#seal().then(() => {
        if (!this.#isStopped) this.#schedule();
      });
    }, this.#everyMs);
    this.#timer.unref();
  }

  async #seal(): Promise<void> {
    try {
      await sealBacklog(this.#audit);
      this.#hasFailed = false;
    } catch (error) {
      if (!this.#hasFailed) this.#onFailure(error);
      this.#hasFailed = true;
    }
  }
}

/**
 * Seals the rows that have no place yet. It stops at the first sealing that is not full: while services write, each
 * further one finds a few new rows, and `audit list` would not end before they stop.
 *
 * @param isWaiting whether to wait while another service seals, so that every row of before the call has its place
 */
export async function sealBacklog(audit: Pick<AuditStore, "seal">, isWaiting = false): Promise<void> {
  while ((await audit.seal(isWaiting)) === SEALED_MAX);
}
