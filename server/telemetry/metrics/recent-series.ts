/** What labels hold in place of the names of callers that were not seen for longest. No client can have it for a name. */
export const OTHERS = "(other)";

/** Maximum number of series of a metric that name callers. A scrape of so many with four counters each has 1 MB. */
export const SERIES_MAX = 2_000;

/**
 * The series of a metric by their labels. Clients may be named by tokens of issuers, so there is no end of
 * them: above a maximum, the series that did not move for longest is retired.
 */
export class RecentSeries<Series> {
  /** Those that name no caller, which are never retired. */
  readonly #unnamed = new Map<string, Series>();
  /** The one that moved most recently is last. */
  readonly #series = new Map<string, Series>();
  readonly #max: number;
  readonly #retire: (series: Series) => void;

  /** @param retire called with a series that is taken out; it may add what it counted to another kind of series */
  constructor(max: number, retire: (series: Series) => void) {
    this.#max = max;
    this.#retire = retire;
  }

  /** The series moves: it is the most recent one. */
  move(key: string, make: () => Series): Series {
    const known = this.#series.get(key);
    const series = known ?? make();
    this.#series.delete(key);
    this.#series.set(key, series);
    if (known === undefined && this.#series.size > this.#max) {
      const [oldest] = this.#series;
      if (oldest !== undefined) {
        this.#series.delete(oldest[0]);
        this.#retire(oldest[1]);
      }
    }
    return series;
  }

  /** A series that names no caller. */
  unnamed(key: string, make: () => Series): Series {
    return this.#unnamed.getOrInsertComputed(key, make);
  }

  /** Takes out those that match. */
  take(matches: (series: Series) => boolean): Series[] {
    const taken: Series[] = [];
    for (const [key, series] of this.#series) {
      if (!matches(series)) continue;
      this.#series.delete(key);
      taken.push(series);
    }
    return taken;
  }

  values(): readonly Series[] {
    return [...this.#unnamed.values(), ...this.#series.values()];
  }
}
