import {
  addTo,
  countOf,
  firstDayKept,
  seriesKey,
  VersionPlaces,
  type WriteCount,
  type WriteKind,
} from "../../domain/rollout/write-count.ts";
import { dayOf } from "../../domain/text/iso-time.ts";
import { COUNTS_MAX, type WriteCountStore } from "../../storage/write-counts/write-count-store.ts";
import type { AnsweredWrite } from "../answered-write.ts";

/** How long counts are gathered. A process that is killed loses those of this time. */
const GATHER_MS = 5_000;

type WriteCounterOptions = {
  /** Called when counts could not be stored, once until that succeeds again. They are kept, and stored later. */
  readonly onFailure: (error: unknown) => void;
  /** {@link GATHER_MS} where it is left out. */
  readonly gatherMs?: number;
};

/**
 * Counts writes with and without If-Match for the rollout report. The counts are gathered in memory and added
 * to the database every few seconds, so that no write waits for them or makes a commit more.
 */
export class WriteCounter {
  readonly #store: WriteCountStore;
  readonly #onFailure: (error: unknown) => void;
  readonly #timer: NodeJS.Timeout;
  readonly #gathered = new Map<string, WriteCount>();
  /** Of the versions that were gathered: a caller that invents them must not fill the memory. */
  #places = new VersionPlaces();
  #storing: Promise<void> = Promise.resolve();
  #hasFailed = false;
  #purgedDay = "";

  constructor(store: WriteCountStore, { onFailure, gatherMs = GATHER_MS }: WriteCounterOptions) {
    this.#store = store;
    this.#onFailure = onFailure;
    this.#timer = setInterval(() => void this.flush(), gatherMs);
    // A process does not live for its next flush: it stops the counter.
    this.#timer.unref();
  }

  record({ answered, method, client, tenant, version }: AnsweredWrite, kind: WriteKind): void {
    const counted = this.#places.versionFor(`${tenant} ${client}`, version);
    const series = { tenant, client, version: counted, method };
    this.#gather(countOf(series, kind, answered.timeMs));
  }

  /** Stores what was gathered, after what is being stored now. Never fails. */
  flush(): Promise<void> {
    this.#storing = this.#storing.then(() => this.#storeGathered());
    return this.#storing;
  }

  /** Stores what was gathered. Call it before the store is closed. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await this.flush();
  }

  async #storeGathered(): Promise<void> {
    const counts = [...this.#gathered.values()];
    this.#gathered.clear();
    this.#places = new VersionPlaces();
    try {
      while (counts.length > 0) {
        await this.#store.add(counts.slice(0, COUNTS_MAX));
        counts.splice(0, COUNTS_MAX);
        this.#hasFailed = false;
      }
      await this.#purge();
    } catch (error) {
      for (const count of counts) this.#gather(count);
      if (!this.#hasFailed) this.#onFailure(error);
      this.#hasFailed = true;
    }
  }

  /** Once a day. What is left of a purge that was full goes with the next flush. */
  async #purge(): Promise<void> {
    const nowMs = Date.now();
    const today = dayOf(nowMs);
    if (this.#purgedDay === today) return;
    const purged = await this.#store.purge(firstDayKept(nowMs));
    if (purged < COUNTS_MAX) this.#purgedDay = today;
  }

  #gather(count: WriteCount): void {
    addTo(this.#gathered, `${seriesKey(count)} ${count.day}`, count);
  }
}
