import type { Registry } from "prom-client";
import type { MaybePromise } from "../../domain/maybe-promise.ts";
import type { TokenRecord } from "../../storage/tokens/token-store.ts";
import { LastAnswer } from "../last-answer.ts";
import { type Sample, scrapedGauge } from "./scraped-metric.ts";

export type TokensToRenew = {
  /** Those that are about to end, and that no other has replaced. */
  readonly expiring: () => MaybePromise<readonly TokenRecord[]>;
  /** Those that were rotated, are about to end, and are used still. */
  readonly stillUsed: () => MaybePromise<readonly TokenRecord[]>;
};

/** Which tokens are about to end. @param tokens asked at each scrape */
export function registerTokenMetrics(
  registry: Registry,
  hasCallerLabels: boolean,
  { expiring, stillUsed }: TokensToRenew,
): void {
  const gauge = (name: string, help: string, ask: TokensToRenew["expiring"]): void => {
    const answer = new LastAnswer<readonly TokenRecord[]>(
      [],
      () => 0,
      async () => await ask(),
    );
    const definition = {
      name,
      help: `${help} Without caller labels: the one that ends first, or NaN.`,
      labelNames: hasCallerLabels ? ["client", "tenant", "token"] : [],
    };
    scrapedGauge(registry, definition, async () => {
      const tokens = await answer.get();
      return hasCallerLabels ? tokens.map(sampleOf) : secondsOf(tokens[0]);
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

function sampleOf(token: TokenRecord): Sample {
  const { client, tenant, prefix } = token;
  return [secondsOf(token), { client, tenant: tenant ?? "", token: prefix }];
}

function secondsOf(token: TokenRecord | undefined): number {
  return (token?.expiresAtMs ?? Number.NaN) / 1000;
}
