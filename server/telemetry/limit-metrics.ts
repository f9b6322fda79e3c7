import type { Registry } from "prom-client";
import Counter from "prom-client/lib/counter.js";
import { LIMIT_NAMES, type Limit, type LimitName, WRONG_TOKENS_OF_ADDRESS } from "../domain/limits.ts";
import { OTHERS, RecentSeries, SERIES_MAX } from "./recent-series.ts";

type LimitHolder = Omit<Limit, "quota">;
type LimitSeries = LimitHolder & { refused: number };

/** How often callers exceeded their limits. */
export class LimitMetrics {
  readonly #hasCallerLabels: boolean;
  /** Those that name no caller, or {@link OTHERS}: one for each limit. */
  readonly #unnamed = new Map<string, LimitSeries>();
  readonly #named: RecentSeries<LimitSeries>;

  constructor(registry: Registry, hasCallerLabels: boolean, seriesMax = SERIES_MAX) {
    this.#hasCallerLabels = hasCallerLabels;
    this.#named = new RecentSeries(seriesMax, ({ name, refused }) => {
      this.#unnamedOf(name, OTHERS).refused += refused;
    });
    const countInto = (counter: Counter): void => this.#countInto(counter);
    new Counter({
      name: "customers_requests_limited_total",
      help: "Requests refused with 429, by the limit that they exceeded.",
      labelNames: ["limit", ...(hasCallerLabels ? ["client", "tenant"] : [])],
      registers: [registry],
      collect() {
        countInto(this);
      },
    });
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
    return this.#named.move(`${name} ${client} ${tenant}`, make);
  }

  #unnamedOf(name: LimitName, client: "" | typeof OTHERS): LimitSeries {
    const key = `${name} ${client}`;
    const series = this.#unnamed.get(key) ?? { name, client, tenant: "", refused: 0 };
    this.#unnamed.set(key, series);
    return series;
  }

  #countInto(counter: Counter): void {
    counter.reset();
    for (const series of [this.#unnamed, this.#named]) {
      for (const { name, client, tenant, refused } of series.values()) {
        counter.inc({ limit: name, ...(this.#hasCallerLabels ? { client, tenant } : {}) }, refused);
      }
    }
  }
}
