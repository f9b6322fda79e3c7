import type { Registry } from "prom-client";
import Counter from "prom-client/lib/counter.js";
import Gauge from "prom-client/lib/gauge.js";
import type { MaybePromise } from "../../domain/maybe-promise.ts";

type Definition = { readonly name: string; readonly help: string; readonly labelNames?: readonly string[] };
/** A value of a metric, and the labels of its series. */
export type Sample = readonly [value: number, labels: Readonly<Record<string, string | number>>];
/** What a metric is at a scrape: one value, or one for each series. */
type Read = () => MaybePromise<number | readonly Sample[]>;

/** A gauge that is read at each scrape. */
export function scrapedGauge(registry: Registry, definition: Definition, read: Read): void {
  new Gauge({
    ...definition,
    registers: [registry],
    async collect() {
      const samples = samplesOf(await read());
      // In one go: scrapes may overlap.
      this.reset();
      for (const [value, labels] of samples) this.set(labels, value);
    },
  });
}

/** A counter that is read at each scrape. */
export function scrapedCounter(registry: Registry, definition: Definition, read: Read): void {
  new Counter({
    ...definition,
    registers: [registry],
    async collect() {
      const samples = samplesOf(await read());
      this.reset();
      for (const [value, labels] of samples) this.inc(labels, value);
    },
  });
}

function samplesOf(read: number | readonly Sample[]): readonly Sample[] {
  return typeof read === "number" ? [[read, {}]] : read;
}
