import { expect, test } from "bun:test";
import { Registry } from "prom-client";
import { countOf, type WriteCount } from "../../domain/rollout/write-count.ts";
import { DAY_MS } from "../../domain/text/iso-time.ts";
import { COUNTS_PAGE } from "../../storage/write-counts/write-count-store.ts";
import { seriesOf } from "../../tests/support/service/metric-series.ts";
import { registerRolloutMetrics } from "./rollout-metrics.ts";

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
  registerRolloutMetrics(registry, true, {
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

test("so many series name clients at most: those that need a look, and those that wrote without If-Match last", async () => {
  const registry = new Registry();
  const write = (client: string, kind: "with" | "refused", daysAgo: number): WriteCount =>
    countOf({ tenant: "acme", client, version: "1.0", method: "PUT" }, kind, NOW_MS - daysAgo * DAY_MS);
  const counts = [
    ...["a", "b", "c", "d"].map((client) => write(client, "with", 20)),
    ...["u", "v", "w", "x"].map((client, daysAgo) => write(client, "refused", daysAgo)),
  ];
  const parts = {
    counts: async function* () {
      yield counts;
    },
    enforcement: () => STRICT,
    now: () => NOW_MS,
  };
  registerRolloutMetrics(registry, true, parts, 5);
  const series = seriesOf(await registry.metrics());
  const clientsOf = (name: string): string[] =>
    [...series.keys()].flatMap((key) =>
      key.startsWith(`${name}{`) ? (/client="(\w)"/.exec(key)?.[1] ?? []) : [],
    );
  expect(clientsOf("customers_rollout_client_state")).toEqual(["u", "v", "w", "x", "a"]);
  expect(clientsOf("customers_rollout_writes_without_if_match")).toEqual(["u", "v", "w", "x"]);
  // All are counted still.
  expect(series.get('customers_rollout_clients{state="enforced"}')).toBe(4);
  const fewer = new Registry();
  registerRolloutMetrics(fewer, true, parts, 3);
  const text = await fewer.metrics();
  expect(text.match(/^customers_rollout_writes_without_if_match\{/gm)).toHaveLength(3);
  expect(text.match(/^customers_rollout_last_without_if_match_seconds\{/gm)).toHaveLength(3);
  expect(text).not.toContain('client="x",client_version');
});
