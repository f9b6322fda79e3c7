const TURN_MS_MAX = 25;

/**
 * Measures how long the event loop has been in its present turn. Bun accepts connections as long as new ones arrive and
 * answers each within the same turn, so that clients which open a connection for each request hold up everything else:
 * timers, signals, the log and the replies of the writer thread. Two runs of `ab -c 64` kept a timer waiting for 1.9 s,
 * as long as they lasted; with this limit for 0.25 s.
 */
export class EventLoopTurn {
  #startedAt: number | null = null;

  /** @param now performance.now() @returns whether the turn should end before anything else is done */
  isTooLong(now: number): boolean {
    if (this.#startedAt !== null) return now - this.#startedAt > TURN_MS_MAX;
    this.#startedAt = now;
    setImmediate(() => {
      this.#startedAt = null;
    });
    return false;
  }
}
