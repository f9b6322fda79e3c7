/**
 * The one limit in time of a command, or of a row in bulk: every request, wait and retry fits into it.
 * It also ends early when the operator interrupts.
 */
export type Deadline = {
  /** Milliseconds left, never below 0; 0 once interrupted. */
  remainingMs(): number;
  /** Aborted by an interruption, not by the passing of time. */
  interrupted: AbortSignal;
  /** Waits, but no longer than until the deadline or an interruption. */
  wait(ms: number): Promise<void>;
};

/** Beyond this, timers fire at once. */
export const TIMER_MS_MAX = 2 ** 31 - 1;

export function startDeadline(timeoutMs: number, interrupted: AbortSignal): Deadline {
  const end = performance.now() + timeoutMs;
  const remainingMs = () => (interrupted.aborted ? 0 : Math.max(0, end - performance.now()));
  return {
    remainingMs,
    interrupted,
    wait: (ms) =>
      new Promise((resolve) => {
        const done = () => {
          clearTimeout(timer);
          interrupted.removeEventListener("abort", done);
          resolve();
        };
        const timer = setTimeout(done, Math.min(ms, remainingMs(), TIMER_MS_MAX));
        interrupted.addEventListener("abort", done);
      }),
  };
}
