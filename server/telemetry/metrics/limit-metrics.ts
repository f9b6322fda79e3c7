import type { Registry } from "prom-client";
import {
  LIMIT_NAMES,
  type Limit,
  type LimitName,
  WRONG_TOKENS_OF_ADDRESS,
} from "../../domain/policy/limits.ts";
import { OTHERS, RecentSeries, SERIES_MAX } from "./recent-series.ts";
import { scrapedCounter } from "./scraped-metric.ts";

type LimitHolder = Omit<Limit, "quota">;
type LimitSeries = LimitHolder & { refused: number };

/** How often callers exceeded their limits. */
export class LimitMetrics {
  readonly #hasCallerLabels: boolean;
  readonly #series: RecentSeries<LimitSeries>;

  constructor(registry: Registry, hasCallerLabels: boolean, seriesMax = SERIES_MAX) {
    this.#hasCallerLabels = hasCallerLabels;
    this.#series = new RecentSeries(seriesMax, ({ name, refused }) => {
      this.#unnamedOf(name, OTHERS).refused += refused;
    });
    const limited = {
      name: "customers_requests_limited_total",
      help: "Requests refused with 429, by the limit that they exceeded.",
      labelNames: ["limit", ...(hasCallerLabels ? ["client", "tenant"] : [])],
    };
    scrapedCounter(registry, limited, () =>
      this.#series
        .values()
        .map(({ name, client, tenant, refused }) => [
          refused,
          { limit: name, ...(hasCallerLabels ? { client, tenant } : {}) },
        ]),
    );
    if (!hasCallerLabels) for (const name of LIMIT_NAMES) this.#unnamedOf(name, "");
    this.begin(WRONG_TOKENS_OF_ADDRESS);
  }

  /** Lets the series of a limit's holder begin at 0: rate() misses a series' first event. */
  begin(limit: LimitHolder): void {
    this.#seriesOf(limit);
  }

  refused(limit: LimitHolder): void {
    this.#seriesOf(limit).refused += 1;
  }

  #seriesOf({ name, client, tenant }: LimitHolder): LimitSeries {
    if (!this.#hasCallerLabels || (client === "" && tenant === "")) return this.#unnamedOf(name, "");
    const make = () => ({ name, client, tenant, refused: 0 });
    return this.#series.move(`${name} ${client} ${tenant}`, make);
  }

  /** The series of a limit without a caller, or with {@link OTHERS} as the caller. */
  #unnamedOf(name: LimitName, client: "" | typeof OTHERS): LimitSeries {
    return this.#series.unnamed(`${name} ${client}`, () => ({ name, client, tenant: "", refused: 0 }));
  }
}
