import { Gauge, type Registry } from "prom-client";
import type { MaybePromise } from "../domain/maybe-promise.ts";
import { StoreUnavailable } from "../storage/customer-store.ts";
import type { TokenRecord } from "../storage/token-store.ts";

export type TokensToRenew = {
  /** Those that are about to end, and that no other has replaced. */
  readonly expiring: () => MaybePromise<readonly TokenRecord[]>;
  /** Those that were rotated, are about to end, and are used still. */
  readonly stillUsed: () => MaybePromise<readonly TokenRecord[]>;
};

/**
 * How long a scrape waits for the tokens. A database that does not answer would
 * otherwise keep back the metrics that say so; what was known last is shown then.
 */
const ANSWER_MS = 1_000;

/** Which tokens are about to end. */
export class TokenMetrics {
  /** @param tokens asked at each scrape */
  constructor(registry: Registry, hasCallerLabels: boolean, { expiring, stillUsed }: TokensToRenew) {
    const gauge = (name: string, help: string, ask: TokensToRenew["expiring"]): void => {
      const answers = new LastAnswer(ask);
      new Gauge({
        name,
        help: `${help} Without caller labels: the one that ends first, or NaN.`,
        labelNames: hasCallerLabels ? ["client", "tenant", "token"] : [],
        registers: [registry],
        async collect() {
          const tokens = await answers.withinTime();
          this.reset();
          if (!hasCallerLabels) this.set(secondsOf(tokens[0]));
          else for (const token of tokens) this.set(labelsOf(token), secondsOf(token));
        },
      });
    };
    gauge(
      "customers_token_expiry_seconds",
      "When a token ends whose end is near, in seconds since 1970.",
      expiring,
    );
    gauge(
      "customers_rotated_token_expiry_seconds",
      "When a rotated token ends that is used still, in seconds since 1970.",
      stillUsed,
    );
  }
}

/** What the store said of tokens last; it is asked again where it has answered. */
class LastAnswer {
  readonly #askStore: TokensToRenew["expiring"];
  #known: readonly TokenRecord[] = [];
  #underWay: Promise<void> | null = null;

  constructor(askStore: TokensToRenew["expiring"]) {
    this.#askStore = askStore;
  }

  async withinTime(): Promise<readonly TokenRecord[]> {
    this.#underWay ??= this.#ask().finally(() => {
      this.#underWay = null;
    });
    await withinTime(this.#underWay);
    return this.#known;
  }

  async #ask(): Promise<void> {
    try {
      this.#known = await this.#askStore();
    } catch (error) {
      // That the database does not answer is shown by requests and by the log.
      if (!(error instanceof StoreUnavailable)) throw error;
    }
  }
}

function labelsOf({ client, tenant, prefix }: TokenRecord): Record<string, string> {
  return { client, tenant: tenant ?? "", token: prefix };
}

function secondsOf(token: TokenRecord | undefined): number {
  return (token?.expiresAtMs ?? Number.NaN) / 1000;
}

async function withinTime(answer: Promise<void>): Promise<void> {
  const { promise: late, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, ANSWER_MS);
  await Promise.race([answer, late]).finally(() => clearTimeout(timer));
}
