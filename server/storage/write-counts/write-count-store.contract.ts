import { afterAll, describe, expect, test } from "bun:test";
import type { MaybePromise } from "../../domain/maybe-promise.ts";
import {
  countOf,
  OTHER_VERSIONS,
  sumBySeries,
  VERSIONS_MAX,
  type WriteCount,
} from "../../domain/rollout/write-count.ts";
import type { Storage } from "../storage.ts";
import { allCounts, COUNTS_MAX, COUNTS_PAGE } from "./write-count-store.ts";

const NOON_MS = Date.UTC(2027, 0, 15, 12);
const DAY_MS = 86_400_000;

/**
 * Every rule of a store of counts, run on each engine.
 *
 * @param open opens the same database each time; the first time it is empty
 */
export async function writeCountStoreContract(
  engine: string,
  open: () => MaybePromise<Storage>,
): Promise<void> {
  const storage = await open();
  const { writeCounts } = storage;
  afterAll(() => storage.close());
  const series = (client: string, version = "1.0") =>
    ({ tenant: "acme", client, version, method: "PUT" }) as const;
  const of = async (client: string): Promise<WriteCount[]> =>
    (await allCounts(writeCounts, "")).filter((count) => count.client === client);

  describe(`${engine}: counts of writes`, () => {
    test("of one series and day add up, whatever the order in which they come", async () => {
      const one = series("adds");
      await writeCounts.add([countOf(one, "allowed", NOON_MS + 2)]);
      await writeCounts.add([countOf(one, "with", NOON_MS + 3)]);
      await writeCounts.add([countOf(one, "refused", NOON_MS + 1)]);
      await writeCounts.add([countOf(one, "with", NOON_MS)]);
      expect(await of("adds")).toEqual([
        {
          ...one,
          day: "2027-01-15",
          withIfMatch: 2,
          allowed: 1,
          refused: 1,
          firstAtMs: NOON_MS,
          lastWithAtMs: NOON_MS + 3,
          firstWithoutAtMs: NOON_MS + 1,
          lastWithoutAtMs: NOON_MS + 2,
        },
      ]);
    });

    test("are kept apart by tenant, client, version, method and day", async () => {
      const one = series("apart");
      await writeCounts.add([
        countOf(one, "with", NOON_MS),
        countOf({ ...one, tenant: "Acme" }, "with", NOON_MS),
        countOf({ ...one, version: "" }, "with", NOON_MS),
        countOf({ ...one, method: "DELETE" }, "with", NOON_MS),
        countOf(one, "with", NOON_MS + DAY_MS),
      ]);
      const counts = await of("apart");
      expect(counts.map(({ withIfMatch }) => withIfMatch)).toEqual([1, 1, 1, 1, 1]);
    });

    test("of several services at once lose none", async () => {
      const other = await open();
      const adds = Array.from({ length: 40 }, (_, n) =>
        (n % 2 === 0 ? storage : other).writeCounts.add(
          ["b", "a", "c"].map((version) => countOf(series("at-once", version), "with", NOON_MS)),
        ),
      );
      await Promise.all(adds);
      await other.close();
      expect((await of("at-once")).map(({ version, withIfMatch }) => [version, withIfMatch])).toEqual([
        ["a", 40],
        ["b", 40],
        ["c", 40],
      ]);
    });

    test("name a bounded number of versions of a client on a day, and count the others together", async () => {
      for (let first = 0; first < 60; first += 15) {
        const versions = Array.from({ length: 15 }, (_, n) => `1.${first + n}`);
        await writeCounts.add(
          versions.map((version) => countOf(series("inventive", version), "with", NOON_MS)),
        );
      }
      await writeCounts.add([countOf(series("inventive", "1.0"), "with", NOON_MS + 1)]);
      const counts = await of("inventive");
      expect(counts.length).toBe(VERSIONS_MAX + 1);
      const seen = (version: string) => counts.find((count) => count.version === version)?.withIfMatch;
      expect([seen("1.0"), seen("1.59"), seen(OTHER_VERSIONS)]).toEqual([2, undefined, 60 - VERSIONS_MAX]);
      await writeCounts.add([countOf(series("inventive", "2.0"), "with", NOON_MS + DAY_MS)]);
      expect(sumBySeries(await of("inventive")).map(({ version }) => version)).toContain("2.0");
    });

    test("are listed from a day on", async () => {
      await writeCounts.add([
        countOf(series("listed"), "with", NOON_MS),
        countOf(series("listed"), "with", NOON_MS + DAY_MS),
      ]);
      const days = (await allCounts(writeCounts, "2027-01-16")).filter(({ client }) => client === "listed");
      expect(days.map(({ day }) => day)).toEqual(["2027-01-16"]);
    });

    test("come in pages of a bounded size, none twice and none left out", async () => {
      const one = series("pages");
      const added: WriteCount[] = [];
      for (let n = 0; n < 2 * COUNTS_PAGE + 10; n += 1) {
        const method = (["PUT", "PATCH", "DELETE"] as const)[n % 3] ?? "PUT";
        const tenant = ["a", "B", "a-b"][n % 7] ?? "b";
        added.push(countOf({ ...one, tenant, version: `1.${n % 10}`, method }, "with", NOON_MS + n * DAY_MS));
      }
      for (let at = 0; at < added.length; at += COUNTS_MAX)
        await writeCounts.add(added.slice(at, at + COUNTS_MAX));
      expect((await writeCounts.page("", null)).length).toBe(COUNTS_PAGE);
      const days = (await of("pages")).map(({ day }) => day).sort();
      expect(days).toEqual(added.map(({ day }) => day).sort());
    });

    test("hold as many as a counter counts", async () => {
      const huge = { ...countOf(series("huge"), "with", NOON_MS), withIfMatch: 2 ** 40 };
      await writeCounts.add([huge]);
      await writeCounts.add([huge]);
      expect((await of("huge"))[0]?.withIfMatch).toBe(2 ** 41);
    });

    test("of earlier days are purged in small deletes", async () => {
      const old = Array.from({ length: COUNTS_MAX + 20 }, (_, n) =>
        countOf(series(`old-${n}`), "with", NOON_MS - 400 * DAY_MS),
      );
      await writeCounts.add(old.slice(0, COUNTS_MAX));
      await writeCounts.add(old.slice(COUNTS_MAX));
      await writeCounts.add([countOf(series("young"), "with", NOON_MS)]);
      const purged = [await writeCounts.purge("2026-01-01"), await writeCounts.purge("2026-01-01")];
      expect(purged).toEqual([COUNTS_MAX, 20]);
      expect(await writeCounts.purge("2026-01-01")).toBe(0);
      expect((await of("young")).length).toBe(1);
    });
  });
}
