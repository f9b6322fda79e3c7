import type { Registry } from "prom-client";
import Counter from "prom-client/lib/counter.js";
import { REFUSAL_REASONS, type RefusedToken } from "../../domain/policy/issuer.ts";
import { scrapedGauge } from "./scraped-metric.ts";

/** When the keys of each issuer were fetched, in ms since 1970; 0 where they never were. */
export type IssuerMetricsParts = () => readonly { readonly issuer: string; readonly fetchedAtMs: number }[];

/** How the keys of other issuers are kept up to date. */
export class IssuerMetrics {
  readonly #fetches: Counter<"issuer" | "result">;
  readonly #refused: Counter<"issuer" | "reason">;

  constructor(registry: Registry, issuerKeys: IssuerMetricsParts) {
    this.#fetches = new Counter({
      name: "customers_issuer_key_fetches_total",
      help: "Fetches of the keys of an issuer, by result: fetched, failed.",
      labelNames: ["issuer", "result"],
      registers: [registry],
    });
    this.#refused = new Counter({
      name: "customers_issuer_tokens_refused_total",
      help: "Tokens of issuers refused with 401, by reason; issuer is empty where a token names none of the policy.",
      labelNames: ["issuer", "reason"],
      registers: [registry],
    });
    const fetched = {
      name: "customers_issuer_keys_fetched_seconds",
      help: "When the keys in force of an issuer were fetched last, in seconds since 1970; 0 where they never were.",
      labelNames: ["issuer"],
    };
    scrapedGauge(registry, fetched, () =>
      issuerKeys().map(({ issuer, fetchedAtMs }) => [fetchedAtMs / 1000, { issuer }]),
    );
  }

  /** @param fetched `fault` is null where it succeeded */
  onFetch({ issuer, fault }: { readonly issuer: string; readonly fault: string | null }): void {
    for (const result of ["fetched", "failed"]) this.#fetches.inc({ issuer, result }, 0);
    this.#fetches.inc({ issuer, result: fault === null ? "fetched" : "failed" });
    for (const reason of REFUSAL_REASONS) this.#refused.inc({ issuer, reason }, 0);
  }

  onRefused({ issuer, reason }: RefusedToken): void {
    this.#refused.inc({ issuer: issuer ?? "", reason });
  }
}
