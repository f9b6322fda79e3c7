const TURN_MS_MAX = 25;
/** A turn with fewer requests is no storm: where it lasts, the system gave the processor to someone else. */
const STORM_REQUESTS = 64;

/**
 * Watches how long the event loop has been in its present turn. Bun accepts connections as long as new
 * ones arrive and answers each within the same turn, so that clients which open a connection for each
 * request hold up everything else: timers, signals, the log and the replies of the writer thread. Two
 * runs of `ab -c 64` kept a timer waiting for 1.9 s, as long as they lasted; with this limit for 0.25 s.
 */
export class EventLoopTurn {
  #startedAt = 0;
  #requests = 0;

  /**
   * Called for each request.
   *
   * @param now performance.now()
   * @returns whether the turn should end before the request is answered
   */
  isTooLong(now: number): boolean {
    this.#requests += 1;
    if (this.#requests > 1) return this.#requests > STORM_REQUESTS && now - this.#startedAt > TURN_MS_MAX;
    this.#startedAt = now;
    setImmediate(() => {
      this.#requests = 0;
    });
    return false;
  }
}
