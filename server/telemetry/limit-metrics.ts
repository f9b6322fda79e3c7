import { Counter, type Registry } from "prom-client";
import { LIMIT_NAMES, type Limit, WRONG_TOKENS_OF_ADDRESS } from "../domain/limits.ts";

type LimitHolder = Omit<Limit, "quota">;

/** How often callers exceeded their limits. */
export class LimitMetrics {
  readonly #hasCallerLabels: boolean;
  readonly #refused: Counter;

  constructor(registry: Registry, hasCallerLabels: boolean) {
    this.#hasCallerLabels = hasCallerLabels;
    this.#refused = new Counter({
      name: "customers_requests_limited_total",
      help: "Requests refused with 429, by the limit that they exceeded.",
      labelNames: ["limit", ...(hasCallerLabels ? ["client", "tenant"] : [])],
      registers: [registry],
    });
    if (!hasCallerLabels) for (const limit of LIMIT_NAMES) this.#refused.inc({ limit }, 0);
    this.begin(WRONG_TOKENS_OF_ADDRESS);
  }

  /** Lets the series of a limit's holder begin at 0: rate() misses a series' first event. */
  begin(limit: LimitHolder): void {
    this.#refused.inc(this.#labelsOf(limit), 0);
  }

  refused(limit: LimitHolder): void {
    this.#refused.inc(this.#labelsOf(limit));
  }

  #labelsOf({ name, client, tenant }: LimitHolder): Record<string, string> {
    return this.#hasCallerLabels ? { limit: name, client, tenant } : { limit: name };
  }
}
