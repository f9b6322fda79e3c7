import { describe, expect, test } from "bun:test";
import { DAY_MS } from "../text/iso-time.ts";
import { readinessOf } from "./client-readiness.ts";
import { ObservedWrites } from "./observed-writes.ts";
import { countOf, OTHER_VERSIONS, VERSIONS_MAX, type WriteCount } from "./write-count.ts";

const NOW_MS = Date.UTC(2027, 2, 1, 12);
const SERIES = { tenant: "acme", client: "shop", version: "1.0", method: "PUT" } as const;
const STRICT = { mode: "strict" } as const;

function observed(...pages: (readonly WriteCount[])[]): ObservedWrites {
  const all = new ObservedWrites();
  for (const page of pages) all.add(page);
  return all;
}

describe("the days of a client", () => {
  test("are those of all its tenants and versions, by method", () => {
    const all = observed(
      [countOf(SERIES, "allowed", NOW_MS), countOf({ ...SERIES, tenant: "globex" }, "with", NOW_MS + 1)],
      [countOf({ ...SERIES, version: "2.0" }, "refused", NOW_MS + 2)],
      [countOf({ ...SERIES, method: "DELETE" }, "with", NOW_MS), countOf(SERIES, "with", NOW_MS - DAY_MS)],
      [countOf({ ...SERIES, client: "other" }, "with", NOW_MS)],
    );
    const days = all.daysOf("shop").map(({ day, method, withIfMatch, allowed, refused }) => ({
      ...{ day, method, withIfMatch, allowed, refused },
    }));
    expect(days).toEqual([
      { day: "2027-03-01", method: "PUT", withIfMatch: 1, allowed: 1, refused: 1 },
      { day: "2027-03-01", method: "DELETE", withIfMatch: 1, allowed: 0, refused: 0 },
      { day: "2027-02-28", method: "PUT", withIfMatch: 1, allowed: 0, refused: 0 },
    ]);
  });

  test("lead to the same judgement as all of its counts", () => {
    const counts = Array.from({ length: 200 }, (_, n) =>
      countOf(
        { ...SERIES, version: `1.${n % 3}`, tenant: n % 2 === 0 ? "acme" : "globex" },
        n % 41 === 0 ? "allowed" : "with",
        NOW_MS - (n / 10) * DAY_MS,
      ),
    );
    expect(readinessOf(observed(counts).daysOf("shop"), STRICT, NOW_MS)).toEqual(
      readinessOf(counts, STRICT, NOW_MS),
    );
  });
});

describe("the series without If-Match of a client", () => {
  test("are bounded by versions, those that wrote so last are named, and none of the writes is left out", () => {
    const counts = Array.from({ length: 3 * VERSIONS_MAX }, (_, n) =>
      countOf({ ...SERIES, version: `1.${n}` }, "allowed", NOW_MS - n * DAY_MS),
    );
    const series = observed(counts, [countOf({ ...SERIES, version: "with" }, "with", NOW_MS)]).withoutIfMatch(
      "shop",
    );
    const named = Array.from({ length: VERSIONS_MAX }, (_, n) => `1.${n}`);
    expect(series.map(({ version }) => version)).toEqual([...named, OTHER_VERSIONS]);
    expect(series.at(-1)).toMatchObject({
      allowed: 2 * VERSIONS_MAX,
      lastWithoutAtMs: NOW_MS - VERSIONS_MAX * DAY_MS,
    });
  });

  test("are bounded in each tenant apart", () => {
    const of = (tenant: string) =>
      Array.from({ length: VERSIONS_MAX }, (_, n) =>
        countOf({ ...SERIES, tenant, version: `1.${n}` }, "refused", NOW_MS),
      );
    expect(observed(of("acme"), of("globex")).withoutIfMatch("shop")).toHaveLength(2 * VERSIONS_MAX);
  });
});

test("a client of many tenants, versions and days is judged, however many counts there are", () => {
  const count = countOf(SERIES, "with", NOW_MS);
  const counts = Array.from({ length: 1_000_000 }, () => count);
  expect(readinessOf(counts, STRICT, NOW_MS)).toMatchObject([{ client: "shop", state: "enforced" }]);
});
