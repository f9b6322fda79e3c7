import { afterAll, describe, expect, test } from "bun:test";
import fc from "fast-check";
import { drawRowVersion } from "../domain/entity-tag.ts";
import { FIELD_NAMES, STATUSES } from "../domain/field-registry.ts";
import { projectionOf } from "../domain/projection.ts";
import { type CustomerStore, IDEMPOTENCY_KEY_MS, type WriteTarget } from "./customer-store.ts";
import type { Storage } from "./storage.ts";

const ALL = projectionOf(FIELD_NAMES);
const ADA = { name: "Ada", email: "ada@example.com", status: "active" } as const;
const NOW = Date.UTC(2026, 0, 1);

/** Every rule that a store keeps, run on each engine. */
export function customerStoreContract(engine: string, open: () => Storage): void {
  const storage = open();
  const store = storage.customers;
  afterAll(() => storage.close());

  async function make(tenant = "t", customer: Parameters<CustomerStore["create"]>[1] = ADA) {
    const outcome = await store.create(tenant, customer, NOW, null);
    if (outcome.kind !== "created") throw new Error(outcome.kind);
    return { tenant, id: outcome.id, expected: outcome.rowVersion };
  }
  const read = async ({ tenant, id }: Pick<WriteTarget, "tenant" | "id">) => store.read(tenant, id, ALL);

  describe(`${engine}: reads`, () => {
    test("a projection returns exactly its fields, whatever it is", async () => {
      const made = await make();
      const whole: Record<string, string> = { id: made.id, ...ADA };
      for (const fields of fc.sample(fc.subarray([...FIELD_NAMES]), 40)) {
        const customer = await store.read("t", made.id, projectionOf(fields));
        expect(customer?.fields).toEqual(Object.fromEntries(fields.map((field) => [field, whole[field]])));
        expect(customer?.rowVersion).toEqual(made.expected);
      }
    });

    test("another tenant's customer is missing to a read, to a version and to every write", async () => {
      const { id, expected } = await make("mine");
      const target = { tenant: "theirs", id, expected };
      expect(await store.read("theirs", id, ALL)).toBeNull();
      expect(await store.rowVersion("theirs", id)).toBeNull();
      expect(await store.replace(target, ADA, ALL, null)).toEqual({ kind: "missing" });
      expect(await store.patch(target, { name: "x" }, ALL, null)).toEqual({ kind: "missing" });
      expect(await store.remove(target, null)).toEqual({ kind: "missing" });
      expect(await store.remove({ ...target, expected: { anyExcept: [] } }, null)).toEqual({
        kind: "missing",
      });
      expect((await read({ tenant: "mine", id }))?.fields).toEqual({ id, ...ADA });
    });

    test("text comes back as it was stored, in any script", async () => {
      await fc.assert(
        fc.asyncProperty(fc.string({ unit: "grapheme", minLength: 1, maxLength: 200 }), async (name) => {
          const made = await make("text", { ...ADA, name });
          expect((await read(made))?.fields.name).toBe(name);
        }),
        { numRuns: 50 },
      );
    });
  });

  describe(`${engine}: writes`, () => {
    test("a write against the stored version is applied, and gives a version never seen before", async () => {
      let target = await make();
      const seen = [target.expected];
      const steps = [
        () => store.replace(target, { name: "B", email: "b@example.com" }, ALL, null),
        () => store.replace(target, { name: "B", email: "b@example.com" }, ALL, null), // the same values again
        () => store.patch(target, { status: "closed" }, ALL, null),
        () => store.patch(target, {}, ALL, null),
      ];
      for (const step of steps) {
        const outcome = await step();
        if (outcome.kind !== "applied") throw new Error(outcome.kind);
        expect(seen).not.toContain(outcome.rowVersion);
        seen.push(outcome.rowVersion);
        target = { ...target, expected: outcome.rowVersion };
        expect(await read(target)).toEqual({ rowVersion: outcome.rowVersion, fields: outcome.fields });
      }
      expect((await read(target))?.fields).toEqual({
        id: target.id,
        name: "B",
        email: "b@example.com",
        status: "closed",
      });
    });

    test("a patch changes the fields that it names and no others", async () => {
      for (const changes of [
        { name: "n" },
        { email: "e@e" },
        { status: STATUSES[1] },
        { name: "n", status: STATUSES[2] },
      ]) {
        const target = await make();
        await store.patch(target, changes, [], null);
        expect((await read(target))?.fields).toEqual({ id: target.id, ...ADA, ...changes });
      }
    });

    test("a write against any other version is stale, names the stored one and changes nothing", async () => {
      const target = await make();
      const before = await read(target);
      const stale = { ...target, expected: drawRowVersion() };
      const expected = { kind: "stale" as const, rowVersion: target.expected };
      expect(await store.replace(stale, { name: "x", email: "x@x" }, ALL, null)).toEqual(expected);
      expect(await store.patch(stale, { name: "x" }, ALL, null)).toEqual(expected);
      expect(await store.remove(stale, null)).toEqual(expected);
      expect(await read(target)).toEqual(before);
    });

    test("a version of the past stays stale, also after delete and re-create", async () => {
      const target = await make();
      expect(await store.remove(target, null)).toEqual({ kind: "removed", isReplayed: false });
      expect(await read(target)).toBeNull();
      for (const write of [
        store.replace(target, ADA, ALL, null),
        store.patch(target, {}, ALL, null),
        store.remove(target, null),
      ]) {
        expect(await write).toEqual({ kind: "missing" });
      }
    });

    test("any version writes whatever is stored", async () => {
      const target = await make();
      expect(
        (
          await store.replace(
            { ...target, expected: { anyExcept: [] } },
            { name: "x", email: "x@x" },
            [],
            null,
          )
        ).kind,
      ).toBe("applied");
      expect(
        (await store.patch({ ...target, expected: { anyExcept: [] } }, { name: "y" }, [], null)).kind,
      ).toBe("applied");
      expect((await store.remove({ ...target, expected: { anyExcept: [] } }, null)).kind).toBe("removed");
    });

    test("of many writes against one version at once exactly one is applied", async () => {
      const target = await make();
      const outcomes = await Promise.all(
        Array.from({ length: 50 }, (_, index) => store.patch(target, { name: `n${index}` }, ALL, null)),
      );
      const applied = outcomes.filter((outcome) => outcome.kind === "applied");
      expect(applied).toHaveLength(1);
      expect(outcomes.filter((outcome) => outcome.kind === "stale")).toHaveLength(49);
      const stored = await read(target);
      for (const outcome of outcomes) {
        if (outcome.kind === "applied" || outcome.kind === "stale")
          expect<string | undefined>(outcome.rowVersion).toBe(stored?.rowVersion);
      }
      expect(stored?.fields).toEqual((applied[0] as { fields: object }).fields);
    });

    test("a write that was answered is seen by the next read", async () => {
      let target = await make();
      for (let round = 0; round < 200; round += 1) {
        const outcome = await store.patch(target, { name: `r${round}` }, [], null);
        if (outcome.kind !== "applied") throw new Error(outcome.kind);
        target = { ...target, expected: outcome.rowVersion };
        expect(await store.read("t", target.id, projectionOf(["name"]))).toEqual({
          rowVersion: outcome.rowVersion,
          fields: { name: `r${round}` },
        });
      }
    });
  });

  describe(`${engine}: pages`, () => {
    // A request whose body was long in coming, another process, a clock set back: whoever has read a page to its end
    // finds every later customer after it.
    test("a new customer's id is greater than all of its tenant, whatever time its request began", async () => {
      let newest = "";
      for (const nowMs of [NOW, NOW, NOW - 1, NOW - 3_600_000, NOW + 1, NOW, NOW + 1, 0, NOW + 2]) {
        const outcome = await store.create("order", ADA, nowMs, null);
        if (outcome.kind !== "created") throw new Error(outcome.kind);
        expect(outcome.id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
        expect(outcome.id > newest).toBe(true);
        newest = outcome.id;
      }
      // Its clock is that of the newest, not one that runs away with each creation.
      expect(Number.parseInt(newest.replaceAll("-", "").slice(0, 12), 16)).toBe(NOW + 2);
    });

    const query = { tenant: "pages", after: null, limit: 3, status: null, email: null };

    test("pages follow each other in the order of creation, each customer once, and the last says so", async () => {
      const made: string[] = [];
      for (let index = 0; index < 7; index += 1) made.push((await make("pages")).id);
      const seen: string[] = [];
      const sizes: number[] = [];
      for (let after: string | null = null; ; ) {
        const page = await store.page({ ...query, after }, projectionOf(["id"]));
        seen.push(...page.items.map((item) => item.fields.id ?? ""));
        sizes.push(page.items.length);
        if (page.lastId === null) break;
        after = page.lastId;
      }
      expect(seen).toEqual(made);
      expect(sizes).toEqual([3, 3, 1]);
      expect((await store.page({ ...query, limit: 7 }, ALL)).lastId).toBeNull();
    });

    test("the paging key is in an item only where the projection has the id", async () => {
      const { items } = await store.page(query, projectionOf(["name"]));
      expect(items.map((item) => Object.keys(item.fields))).toEqual([["name"], ["name"], ["name"]]);
    });

    test("a page filters by status and by exact email", async () => {
      await make("filter", { ...ADA, status: "closed", email: "X@example.com" });
      await make("filter", { ...ADA, email: "x@example.com" });
      const count = async (filter: object) =>
        (await store.page({ ...query, tenant: "filter", ...filter }, [])).items.length;
      expect(await count({})).toBe(2);
      expect(await count({ status: "closed" })).toBe(1);
      expect(await count({ status: "suspended" })).toBe(0);
      expect(await count({ email: "x@example.com" })).toBe(1);
      expect(await count({ email: "x@example.com", status: "closed" })).toBe(0);
    });
  });

  describe(`${engine}: idempotency keys`, () => {
    const key = { tokenId: "c", key: "k1", digest: "01", nowMs: NOW };
    const count = async (tenant: string) =>
      (await store.page({ tenant, after: null, limit: 100, status: null, email: null }, [])).items.length;

    test("a repeated key answers the first customer and makes no other", async () => {
      const first = await store.create("keys", ADA, NOW, key);
      const again = await store.create("keys", ADA, NOW, key);
      expect(again).toEqual({ ...first, isReplayed: true } as typeof again);
      expect(await count("keys")).toBe(1);
    });

    test("a key with another body is refused and makes nothing", async () => {
      expect(await store.create("keys", ADA, NOW, { ...key, digest: "02" })).toEqual({
        kind: "key-reused",
      });
      expect(await count("keys")).toBe(1);
    });

    test("a key is its tenant's and its token's own, and lives 24 hours", async () => {
      expect((await store.create("keys2", ADA, NOW, key)).kind).toBe("created");
      expect((await store.create("keys", ADA, NOW, { ...key, tokenId: "d" })).kind).toBe("created");
      const last = NOW + IDEMPOTENCY_KEY_MS - 1;
      expect(await store.create("keys", ADA, last, { ...key, nowMs: last })).toMatchObject({
        isReplayed: true,
      });
      const later = NOW + IDEMPOTENCY_KEY_MS;
      expect(await store.create("keys", ADA, later, { ...key, nowMs: later })).toMatchObject({
        isReplayed: false,
      });
    });

    test("one key raced many times makes one customer", async () => {
      const outcomes = await Promise.all(
        Array.from({ length: 30 }, () => store.create("race", ADA, NOW, { ...key, key: "race" })),
      );
      expect(outcomes.filter((outcome) => outcome.kind === "created" && !outcome.isReplayed)).toHaveLength(1);
      expect(outcomes.filter((outcome) => outcome.kind === "created" && outcome.isReplayed)).toHaveLength(29);
      expect(await count("race")).toBe(1);
    });
  });

  test(`${engine}: the cursor key is 32 bytes`, () => {
    expect(store.cursorKey).toHaveLength(32);
  });
}
