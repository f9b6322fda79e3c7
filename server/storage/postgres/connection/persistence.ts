import { StoreUnavailable } from "../../customers/customer-store.ts";
import { failureOf, type StatementFailed } from "./statement-failure.ts";

const FIRST_DELAY_MS = 5;
/**
 * A server that refuses connections is asked no more often: a fail-over is noticed this much later at most.
 */
const DELAY_MS_MAX = 200;

/**
 * Full jitter, so that those that collided do not meet again.
 *
 * @param tries how many have failed, 1 or more
 */
export function retryDelayMs(tries: number, random = Math.random()): number {
  return Math.ceil(random * Math.min(DELAY_MS_MAX, FIRST_DELAY_MS * 2 ** Math.min(tries, 10)));
}

type Attempts = {
  /** Whether the statement may be sent again after its answer was lost. */
  readonly isRepeatable: boolean;
  readonly giveUpMs: number;
  /** Called before each repetition. */
  readonly onRetry: (failure: StatementFailed) => void;
};

/**
 * Repeats statements until they succeed, or until that is useless: a client need not see a restart of the
 * server, a fail-over or a deadlock, when it can be served a moment later.
 *
 * @throws StoreUnavailable when the time is up or the outcome
 *   is unknown; StatementFailed of the kind "refused"
 */
export async function persist<T>(
  attempt: (giveUpAt: number) => Promise<T>,
  { isRepeatable, giveUpMs, onRetry }: Attempts,
): Promise<T> {
  const giveUpAt = performance.now() + giveUpMs;
  for (let tries = 1; ; tries += 1) {
    try {
      return await attempt(giveUpAt);
    } catch (error) {
      if (error instanceof StoreUnavailable) throw error;
      const failure = failureOf(error, true);
      if (failure.kind === "refused") throw failure;
      if (failure.kind === "unknown" && !isRepeatable) throw unknownOutcome(failure);
      if (performance.now() >= giveUpAt) throw unavailable(failure);
      onRetry(failure);
      await Bun.sleep(retryDelayMs(tries));
    }
  }
}

export function unavailable(failure: StatementFailed): StoreUnavailable {
  return new StoreUnavailable(failure.message, { cause: failure });
}

export function unknownOutcome(failure: StatementFailed): StoreUnavailable {
  return new StoreUnavailable(`${failure.message}; the write may have been applied`, {
    cause: failure,
    isOutcomeUnknown: true,
  });
}
