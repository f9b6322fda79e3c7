const TURN_MS_MAX = 25;

/**
 * A turn of the event loop, watched. Bun accepts connections for as long as new ones come and answers each within the
 * same turn; clients that send one request a connection can so keep everything else waiting for many seconds:
 * signals, timers, the log, and the answers of the writer's thread.
 */
export class Turn {
  #startedAt: number | null = null;

  /** @param now performance.now() @returns whether it has lasted so long that it should end before anything else is done */
  isOver(now: number): boolean {
    if (this.#startedAt !== null) return now - this.#startedAt > TURN_MS_MAX;
    this.#startedAt = now;
    setImmediate(() => {
      this.#startedAt = null;
    });
    return false;
  }
}
