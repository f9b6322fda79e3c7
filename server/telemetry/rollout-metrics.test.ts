import { expect, test } from "bun:test";
import { Registry } from "prom-client";
import { countOf, DAY_MS, type WriteCount } from "../domain/rollout/write-count.ts";
import { COUNTS_PAGE } from "../storage/write-count-store.ts";
import { seriesOf } from "../tests/support/metric-series.ts";
import { RolloutMetrics } from "./rollout-metrics.ts";

const NOW_MS = Date.UTC(2027, 2, 1, 12);
const STRICT = { mode: "strict" } as const;

/** @returns the pages of so many clients, each of which wrote on each of 20 days */
function pagesOf(clients: number): WriteCount[][] {
  const counts = Array.from({ length: clients * 20 }, (_, n) => {
    const client = `client-${Math.floor(n / 20)}`;
    const series = { tenant: "acme", client, version: "1.0", method: "PUT" } as const;
    return countOf(series, "refused", NOW_MS - (n % 20) * DAY_MS);
  });
  const pages: WriteCount[][] = [];
  for (let at = 0; at < counts.length; at += COUNTS_PAGE) pages.push(counts.slice(at, at + COUNTS_PAGE));
  return pages;
}

test("counts are read and judged a few in a turn of the event loop, so that requests go on", async () => {
  const registry = new Registry();
  const pages = pagesOf(500);
  new RolloutMetrics(registry, true, {
    counts: async function* () {
      yield* pages;
    },
    enforcement: () => STRICT,
    now: () => NOW_MS,
  });
  let turns = 0;
  let isOver = false;
  const count = (): void => {
    turns += 1;
    if (!isOver) setImmediate(count);
  };
  setImmediate(count);
  const series = seriesOf(await registry.metrics());
  isOver = true;
  expect(series.get('customers_rollout_clients{state="refused"}')).toBe(500);
  // 10,000 counts: one turn for each page, and at least one for each thousand that is judged.
  expect(turns).toBeGreaterThanOrEqual(pages.length - 1 + 9);
});
