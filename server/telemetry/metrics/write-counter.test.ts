import { expect, test } from "bun:test";
import type { WriteCount, WriteKind } from "../../domain/rollout/write-count.ts";
import { StoreUnavailable } from "../../storage/customers/customer-store.ts";
import { allCounts, type WriteCountStore } from "../../storage/write-counts/write-count-store.ts";
import { ANY_WAY } from "../../tests/support/database/storage-ways.ts";
import { WriteCounter } from "./write-counter.ts";

const NEVER_MS = 3_600_000;

async function withCounter(
  use: (
    counter: WriteCounter,
    store: WriteCountStore,
    failures: unknown[],
    fail: (isOn: boolean) => void,
  ) => Promise<void>,
): Promise<void> {
  const storage = await ANY_WAY.open(crypto.randomUUID());
  const { writeCounts } = storage;
  let isFailing = false;
  const failures: unknown[] = [];
  // The engine's own, but for the moments in which it can't answer.
  const store: WriteCountStore = {
    add: (counts) => (isFailing ? Promise.reject(new StoreUnavailable("locked")) : writeCounts.add(counts)),
    page: (fromDay, after) => writeCounts.page(fromDay, after),
    purge: (beforeDay) => writeCounts.purge(beforeDay),
  };
  const counter = new WriteCounter(store, { gatherMs: NEVER_MS, onFailure: (error) => failures.push(error) });
  try {
    await use(counter, writeCounts, failures, (isOn) => {
      isFailing = isOn;
    });
  } finally {
    await counter.stop();
    await storage.close();
  }
}

const record = (counter: WriteCounter, kind: WriteKind, version = "1.0", client = "shop"): void =>
  counter.record(
    {
      answered: {
        timeMs: Date.now(),
        method: "PUT",
        route: "/customers/{id}",
        status: 204,
        durationMs: 1,
        requestId: "",
        caller: null,
        code: undefined,
        isAllowedWithoutIfMatch: kind === "allowed",
        isReplayed: false,
      },
      method: "PUT",
      client,
      tenant: "acme",
      version,
    },
    kind,
  );

const total = (counts: readonly WriteCount[]) => counts.reduce((sum, count) => sum + count.withIfMatch, 0);

test("nothing is written until a flush, and each write is in one flush", async () => {
  await withCounter(async (counter, store) => {
    for (let n = 0; n < 1_000; n += 1) record(counter, "with");
    expect(await allCounts(store, "")).toEqual([]);
    await Promise.all([counter.flush(), counter.flush()]);
    record(counter, "with");
    await counter.stop();
    expect(total(await allCounts(store, ""))).toBe(1_001);
  });
});

test("counts that could not be stored are kept and stored later; the failure is said once", async () => {
  await withCounter(async (counter, store, failures, fail) => {
    fail(true);
    for (let n = 0; n < 3; n += 1) {
      record(counter, "with", `1.${n}`);
      await counter.flush();
    }
    expect([failures.length, await allCounts(store, "")]).toEqual([1, []]);
    fail(false);
    await counter.flush();
    expect(total(await allCounts(store, ""))).toBe(3);
  });
});

test("many clients, and one that invents versions, are stored whole in bounded steps and rows", async () => {
  await withCounter(async (counter, store) => {
    for (let n = 0; n < 2_000; n += 1) record(counter, "with", `1.${n}`);
    for (let n = 0; n < 250; n += 1) record(counter, "with", "1.0", `client-${n}`);
    await counter.flush();
    const counts = await allCounts(store, "");
    expect([total(counts), counts.filter(({ client }) => client === "shop").length]).toEqual([2_250, 21]);
  });
});
