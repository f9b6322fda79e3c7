import { addTo, seriesKey, VersionPlaces, type WriteCount } from "./write-count.ts";

/** The counts of one client, summed as they come. */
type ClientCounts = {
  /** One for each day and method. */
  readonly days: Map<string, WriteCount>;
  readonly series: Map<string, WriteCount>;
};

/** What is known of each client, gathered from counts a few at a time: all of them may be hundreds of thousands. */
export class ObservedWrites {
  readonly #clients = new Map<string, ClientCounts>();

  add(counts: readonly WriteCount[]): void {
    for (const count of counts) {
      const none = (): ClientCounts => ({ days: new Map(), series: new Map() });
      const client = this.#clients.getOrInsertComputed(count.client, none);
      addTo(client.days, `${count.day} ${count.method}`, count);
      addTo(client.series, seriesKey(count), count);
    }
  }

  get clients(): Iterable<string> {
    return this.#clients.keys();
  }

  /** What the readiness of a client is judged by. */
  daysOf(client: string): readonly WriteCount[] {
    return [...(this.#clients.get(client)?.days.values() ?? [])];
  }

  /**
   * The series of a client that have writes without If-Match. Of each tenant those of the versions that wrote so last are
   * apart, as {@link VersionPlaces} says: a caller chooses its versions, and may choose new ones each day.
   */
  withoutIfMatch(client: string): readonly WriteCount[] {
    const series = [...(this.#clients.get(client)?.series.values() ?? [])]
      .filter(({ lastWithoutAtMs }) => lastWithoutAtMs !== null)
      .sort((one, other) => (other.lastWithoutAtMs ?? 0) - (one.lastWithoutAtMs ?? 0));
    const places = new VersionPlaces();
    const bounded = new Map<string, WriteCount>();
    for (const count of series) {
      const shown = { ...count, version: places.versionFor(count.tenant, count.version) };
      addTo(bounded, seriesKey(shown), shown);
    }
    return [...bounded.values()];
  }
}
