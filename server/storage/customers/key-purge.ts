import { type CustomerStore, PURGED_KEYS_MAX } from "./customer-store.ts";

/** How long an expired key may stay. Its outcome may hold personal data. */
const EVERY_MS = 600_000;
/**
 * After a bulk import keys expire as fast as they came: a purge that was full is soon followed by another.
 */
const FULL_PAUSE_MS = 100;

/** Deletes expired idempotency keys in the background: at the start, and then every ten minutes. */
export class KeyPurge {
  readonly #store: CustomerStore;
  readonly #onFailure: (error: unknown) => void;
  #timer: NodeJS.Timeout | undefined;
  #isStopped = false;

  /**
   * @param onFailure a locked or full disk, for instance; the
   *   keys stay until the next purge, and are as good as new
   */
  constructor(store: CustomerStore, onFailure: (error: unknown) => void) {
    this.#store = store;
    this.#onFailure = onFailure;
    void this.#purge();
  }

  /** Call it before the store is closed. */
  stop(): void {
    this.#isStopped = true;
    clearTimeout(this.#timer);
  }

  async #purge(): Promise<void> {
    const purged = await this.#store.purgeKeys(Date.now()).catch(this.#onFailure);
    if (this.#isStopped) return;
    this.#timer = setTimeout(() => void this.#purge(), purged === PURGED_KEYS_MAX ? FULL_PAUSE_MS : EVERY_MS);
    // A process does not live for its next purge.
    this.#timer.unref();
  }
}
