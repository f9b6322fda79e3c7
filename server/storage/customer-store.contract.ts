import { afterAll, describe, expect, test } from "bun:test";
import fc from "fast-check";
import { drawRowVersion, type RowVersion } from "../domain/entity-tag.ts";
import { FIELD_NAMES, STATUSES } from "../domain/field-registry.ts";
import type { MaybePromise } from "../domain/maybe-promise.ts";
import { NO_BODY, projectionOf } from "../domain/projection.ts";
import { TEST_ORIGIN } from "../tests/support/test-origin.ts";
import {
  type CreateOutcome,
  type CustomerStore,
  IDEMPOTENCY_KEY_MS,
  type IdempotencyKey,
  PURGED_KEYS_MAX,
  type RemoveOutcome,
  type StoredCustomer,
  type WriteOutcome,
  type WriteTarget,
} from "./customer-store.ts";
import type { Storage } from "./storage.ts";

const ALL = projectionOf(FIELD_NAMES);
const ADA = { name: "Ada", email: "ada@example.com", status: "active" } as const;
const NOW = Date.UTC(2026, 0, 1);

/** Every rule that a store keeps, run on each engine. */
export async function customerStoreContract(
  engine: string,
  open: () => MaybePromise<Storage>,
): Promise<void> {
  const storage = await open();
  const store = storage.customers;
  afterAll(() => storage.close());

  async function make(tenant = "t", customer: Parameters<CustomerStore["create"]>[1] = ADA) {
    const outcome = await store.create(tenant, customer, NOW, null, TEST_ORIGIN);
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
      expect(await store.update(target, ADA, ALL, null, TEST_ORIGIN)).toEqual({ kind: "missing" });
      expect(await store.update(target, { name: "x" }, ALL, null, TEST_ORIGIN)).toEqual({ kind: "missing" });
      expect(await store.remove(target, null, TEST_ORIGIN)).toEqual({ kind: "missing" });
      expect(await store.remove({ ...target, expected: { anyExcept: [] } }, null, TEST_ORIGIN)).toEqual({
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
        {
          numRuns: 50,
          examples: [["'; DROP TABLE customers; --"], ['" OR ""="'], ["\\' OR 1=1 --"], ["$1 ? :id"]],
        },
      );
    });
  });

  describe(`${engine}: writes`, () => {
    test("a write against the stored version is applied, and gives a version never seen before", async () => {
      let target = await make();
      const seen = [target.expected];
      const steps = [
        () => store.update(target, { name: "B", email: "b@example.com" }, ALL, null, TEST_ORIGIN),
        () => store.update(target, { name: "B", email: "b@example.com" }, ALL, null, TEST_ORIGIN), // the same values again
        () => store.update(target, { status: "closed" }, ALL, null, TEST_ORIGIN),
        () => store.update(target, {}, ALL, null, TEST_ORIGIN),
      ];
      for (const step of steps) {
        const outcome = await step();
        if (outcome.kind !== "applied") throw new Error(outcome.kind);
        expect(seen).not.toContain(outcome.rowVersion);
        seen.push(outcome.rowVersion);
        target = { ...target, expected: outcome.rowVersion };
        const { rowVersion, fields } = outcome;
        expect(await read(target)).toEqual({ rowVersion, fields } as StoredCustomer);
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
        await store.update(target, changes, NO_BODY, null, TEST_ORIGIN);
        expect((await read(target))?.fields).toEqual({ id: target.id, ...ADA, ...changes });
      }
    });

    test("a write against any other version is stale, names the stored one and changes nothing", async () => {
      const target = await make();
      const before = await read(target);
      const stale = { ...target, expected: drawRowVersion() };
      const expected = { kind: "stale" as const, rowVersion: target.expected };
      expect(await store.update(stale, { name: "x", email: "x@x" }, ALL, null, TEST_ORIGIN)).toEqual(
        expected,
      );
      expect(await store.update(stale, { name: "x" }, ALL, null, TEST_ORIGIN)).toEqual(expected);
      expect(await store.remove(stale, null, TEST_ORIGIN)).toEqual(expected);
      expect(await read(target)).toEqual(before);
    });

    test("a version of the past stays stale, also after delete and re-create", async () => {
      const target = await make();
      expect(await store.remove(target, null, TEST_ORIGIN)).toEqual({ kind: "removed", isReplayed: false });
      expect(await read(target)).toBeNull();
      for (const write of [
        store.update(target, ADA, ALL, null, TEST_ORIGIN),
        store.update(target, {}, ALL, null, TEST_ORIGIN),
        store.remove(target, null, TEST_ORIGIN),
      ]) {
        expect(await write).toEqual({ kind: "missing" });
      }
    });

    test("any version writes whatever is stored", async () => {
      const target = await make();
      expect(
        (
          await store.update(
            { ...target, expected: { anyExcept: [] } },
            { name: "x", email: "x@x" },
            NO_BODY,
            null,
            TEST_ORIGIN,
          )
        ).kind,
      ).toBe("applied");
      expect(
        (
          await store.update(
            { ...target, expected: { anyExcept: [] } },
            { name: "y" },
            NO_BODY,
            null,
            TEST_ORIGIN,
          )
        ).kind,
      ).toBe("applied");
      expect((await store.remove({ ...target, expected: { anyExcept: [] } }, null, TEST_ORIGIN)).kind).toBe(
        "removed",
      );
    });

    test("any version but some writes only where none of those is stored", async () => {
      const target = await make();
      const others = [drawRowVersion(), drawRowVersion()];
      const but = (...anyExcept: RowVersion[]) => ({ ...target, expected: { anyExcept } });
      const stale = { kind: "stale" as const, rowVersion: target.expected };
      const isStored = but(...others, target.expected);
      expect(await store.update(isStored, { name: "x", email: "x@x" }, NO_BODY, null, TEST_ORIGIN)).toEqual(
        stale,
      );
      expect(await store.update(isStored, { name: "x" }, NO_BODY, null, TEST_ORIGIN)).toEqual(stale);
      expect(await store.remove(isStored, null, TEST_ORIGIN)).toEqual(stale);
      expect((await store.update(but(...others), { name: "x" }, NO_BODY, null, TEST_ORIGIN)).kind).toBe(
        "applied",
      );
      expect((await store.remove(but(target.expected), null, TEST_ORIGIN)).kind).toBe("removed");
      expect(await store.update(but(...others), { name: "x" }, NO_BODY, null, TEST_ORIGIN)).toEqual({
        kind: "missing",
      });
    });

    test("of many writes against one version at once exactly one is applied", async () => {
      const target = await make();
      const outcomes = await Promise.all(
        Array.from({ length: 50 }, (_, index) =>
          store.update(target, { name: `n${index}` }, ALL, null, TEST_ORIGIN),
        ),
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
        const outcome = await store.update(target, { name: `r${round}` }, NO_BODY, null, TEST_ORIGIN);
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
    // A slow body, another process or a clock set back must not put
    // a new customer before the end of a page that was already read.
    test("a new customer's id is greater than all of its tenant, whatever time its request began", async () => {
      let newest = "";
      for (const nowMs of [NOW, NOW, NOW - 1, NOW - 3_600_000, NOW + 1, NOW, NOW + 1, 0, NOW + 2]) {
        const outcome = await store.create("order", ADA, nowMs, null, TEST_ORIGIN);
        if (outcome.kind !== "created") throw new Error(outcome.kind);
        expect(outcome.id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
        expect(outcome.id > newest).toBe(true);
        newest = outcome.id;
      }
      // Its clock is that of the newest, not one that runs away with each creation.
      expect(Number.parseInt(newest.replaceAll("-", "").slice(0, 12), 16)).toBe(NOW + 2);
    });

    test("a new customer's id is greater than all that its tenant ever had, also when the newest are deleted", async () => {
      const made = [];
      for (let index = 0; index < 5; index += 1) made.push(await make("newest"));
      const newest = made.at(-1)?.id ?? "";
      for (const target of made.slice(1)) await store.remove(target, null, TEST_ORIGIN);
      const outcome = await store.create("newest", ADA, NOW - 1, null, TEST_ORIGIN);
      if (outcome.kind !== "created") throw new Error(outcome.kind);
      expect(outcome.id > newest).toBe(true);
      const page = { tenant: "newest", after: newest, limit: 10, status: null, email: null };
      const { items } = await store.page(page, projectionOf(["id"]));
      expect(items.map(({ fields }) => fields.id)).toEqual([outcome.id]);
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

    test("a page filters by email without regard to case, whatever write stored it", async () => {
      const [first, second] = [
        await make("fold", { ...ADA, email: "Zo\u00cb@Example.COM" }),
        await make("fold"),
      ];
      await store.update(second, { name: "x", email: "GRACE@example.com" }, NO_BODY, null, TEST_ORIGIN);
      const found = async (email: string) =>
        (await store.page({ ...query, tenant: "fold", email }, projectionOf(["id"]))).items.map(
          ({ fields }) => fields.id,
        );
      expect(await found("zo\u00eb@example.com")).toEqual([first.id]);
      expect(await found("grace@EXAMPLE.com")).toEqual([second.id]);
      await store.update(
        { ...second, expected: { anyExcept: [] } },
        { email: "Ada@Example.com" },
        NO_BODY,
        null,
        TEST_ORIGIN,
      );
      expect(await found("grace@example.com")).toEqual([]);
      expect(await found("ADA@EXAMPLE.COM")).toEqual([second.id]);
      expect(await found("zoe@example.com")).toEqual([]);
      expect((await read(first))?.fields.email).toBe("Zo\u00cb@Example.COM");
    });

    test("a page filters by status and by email", async () => {
      await make("filter", { ...ADA, status: "closed", email: "y@example.com" });
      await make("filter", { ...ADA, email: "x@example.com" });
      const count = async (filter: object) =>
        (await store.page({ ...query, tenant: "filter", ...filter }, NO_BODY)).items.length;
      expect(await count({})).toBe(2);
      expect(await count({ status: "closed" })).toBe(1);
      expect(await count({ status: "suspended" })).toBe(0);
      expect(await count({ email: "x@example.com" })).toBe(1);
      expect(await count({ email: "x@example.com", status: "closed" })).toBe(0);
    });
  });

  describe(`${engine}: idempotency keys`, () => {
    const KEY = { tokenId: "c", key: "k1", digest: "01", nowMs: NOW };
    let keys = 0;
    const newKey = () => ({ ...KEY, key: `key ${++keys}` });
    const count = async (tenant: string) =>
      (await store.page({ tenant, after: null, limit: 100, status: null, email: null }, NO_BODY)).items
        .length;
    type Write = (
      target: WriteTarget,
      key: IdempotencyKey | null,
    ) => Promise<CreateOutcome | WriteOutcome | RemoveOutcome>;
    const WRITES: [string, Write][] = [
      ["create", ({ tenant }, key) => store.create(tenant, ADA, NOW, key, TEST_ORIGIN)],
      ["replace", (target, key) => store.update(target, { name: "B", email: "b@b" }, ALL, key, TEST_ORIGIN)],
      [
        "patch",
        (target, key) =>
          store.update(target, { status: "closed" }, projectionOf(["status"]), key, TEST_ORIGIN),
      ],
      ["remove", (target, key) => store.remove(target, key, TEST_ORIGIN)],
    ];

    test.each(WRITES)("a repeated %s answers the first outcome and writes nothing", async (_, write) => {
      const target = await make();
      const key = newKey();
      const first = await write(target, key);
      expect(first).toMatchObject({ isReplayed: false });
      const customers = await count("t");
      const stored = await read(target);
      expect(await write(target, key)).toEqual({ ...first, isReplayed: true } as typeof first);
      expect(await read(target)).toEqual(stored);
      expect(await count("t")).toBe(customers);
    });

    test.each(WRITES)("a %s that raced many times under one key is one write", async (_, write) => {
      const target = await make();
      const key = newKey();
      const outcomes = await Promise.all(Array.from({ length: 12 }, () => write(target, key)));
      const first = outcomes.find((outcome) => "isReplayed" in outcome && !outcome.isReplayed);
      if (first === undefined) throw new Error("every one is a replay");
      expect(outcomes).toEqual(
        outcomes.map((outcome) => ({ ...first, isReplayed: outcome !== first }) as typeof outcome),
      );
    });

    test.each(WRITES)(
      "a %s that is another request under a used key is refused, and writes nothing",
      async (_, write) => {
        const key = newKey();
        const used = await make();
        await store.update(used, { name: "first" }, NO_BODY, key, TEST_ORIGIN);
        const target = await make();
        const customers = await count("t");
        expect(await write(target, { ...key, digest: "02" })).toEqual({ kind: "key-reused" });
        expect((await read(target))?.rowVersion).toEqual(target.expected);
        expect(await count("t")).toBe(customers);
      },
    );

    test.each(WRITES)(
      "a %s that is refused under a used key leaves the kept outcome whole",
      async (_, write) => {
        const key = newKey();
        const target = await make();
        const first = await store.update(target, { name: "B", email: "b@b" }, ALL, key, TEST_ORIGIN);
        expect(await write(target, { ...key, digest: "02" })).toEqual({ kind: "key-reused" });
        expect(await store.update(target, { name: "B", email: "b@b" }, ALL, key, TEST_ORIGIN)).toEqual({
          ...first,
          isReplayed: true,
        } as typeof first);
      },
    );

    test("a replay answers what the first write made, whatever has become of the customer since", async () => {
      const target = await make();
      const key = newKey();
      const first = await store.update(target, { name: "B", email: "b@b" }, ALL, key, TEST_ORIGIN);
      if (first.kind !== "applied") throw new Error(first.kind);
      expect(first.fields).toEqual({ id: target.id, name: "B", email: "b@b", status: "active" });
      await store.update(
        { ...target, expected: first.rowVersion },
        { name: "C" },
        NO_BODY,
        null,
        TEST_ORIGIN,
      );
      expect(await store.update(target, { name: "B", email: "b@b" }, ALL, key, TEST_ORIGIN)).toEqual({
        ...first,
        isReplayed: true,
      });
    });

    test.each(["with a key", "without a key"])(
      "of a deleted customer a replay has everything but its fields, which are kept nowhere (delete %s)",
      async (how) => {
        const target = await make();
        const other = await make();
        const [key, othersKey, bareKey] = [newKey(), newKey(), newKey()];
        const write = (at: WriteTarget, under: IdempotencyKey) =>
          store.update(at, { name: "B", email: "b@b" }, ALL, under, TEST_ORIGIN);
        const first = await write(target, key);
        const others = await write(other, othersKey);
        const anyVersion = { ...target, expected: { anyExcept: [] } };
        const bare = await store.update(anyVersion, { name: "C" }, NO_BODY, bareKey, TEST_ORIGIN);
        await store.remove(anyVersion, how === "with a key" ? newKey() : null, TEST_ORIGIN);
        expect(await write(target, key)).toEqual({
          ...first,
          fields: null,
          isReplayed: true,
        } as typeof first);
        expect(await write(other, othersKey)).toEqual({ ...others, isReplayed: true } as typeof first);
        const again = await store.update(anyVersion, { name: "C" }, NO_BODY, bareKey, TEST_ORIGIN);
        expect(again).toEqual({ ...bare, isReplayed: true } as typeof bare);
        expect(await read(target)).toBeNull();
      },
    );

    test("a key is used once a write under it was accepted, for 24 hours, and for its token", async () => {
      const key = newKey();
      const target = await make();
      const isUsed = async (other: Partial<IdempotencyKey> = {}) => store.isKeyUsed({ ...key, ...other });
      expect(await isUsed()).toBe(false);
      await store.update({ ...target, expected: drawRowVersion() }, { name: "x" }, NO_BODY, key, TEST_ORIGIN);
      expect(await isUsed()).toBe(false);
      await store.update(target, { name: "x" }, NO_BODY, key, TEST_ORIGIN);
      expect(await isUsed({ nowMs: NOW + IDEMPOTENCY_KEY_MS - 1 })).toBe(true);
      expect(await isUsed({ nowMs: NOW + IDEMPOTENCY_KEY_MS })).toBe(false);
      expect(await isUsed({ tokenId: "d" })).toBe(false);
    });

    test("a refused write does not use its key up: it is judged anew", async () => {
      const target = await make();
      const key = newKey();
      const stale = { ...target, expected: drawRowVersion() };
      expect((await store.update(stale, { name: "x" }, NO_BODY, key, TEST_ORIGIN)).kind).toBe("stale");
      expect((await store.remove({ ...target, id: crypto.randomUUID() }, key, TEST_ORIGIN)).kind).toBe(
        "missing",
      );
      expect(
        await store.update(target, { name: "x" }, NO_BODY, { ...key, digest: "02" }, TEST_ORIGIN),
      ).toMatchObject({
        kind: "applied",
        isReplayed: false,
      });
    });

    test("a key is its token's own, and lives 24 hours", async () => {
      const key = newKey();
      const create = (nowMs: number, other: Partial<IdempotencyKey> = {}) =>
        store.create("keys", ADA, nowMs, { ...key, nowMs, ...other }, TEST_ORIGIN);
      const first = await create(NOW);
      expect(await create(NOW, { tokenId: "d" })).toMatchObject({ isReplayed: false });
      expect(await create(NOW + IDEMPOTENCY_KEY_MS - 1)).toEqual({
        ...first,
        isReplayed: true,
      } as typeof first);
      // Still there or not, an expired key is as good as new, for any request.
      const second = await create(NOW + IDEMPOTENCY_KEY_MS, { digest: "02" });
      expect(second).toMatchObject({ kind: "created", isReplayed: false });
      expect(await create(NOW + IDEMPOTENCY_KEY_MS, { digest: "02" })).toEqual({
        ...second,
        isReplayed: true,
      } as typeof first);
    });

    test(`a purge deletes expired keys alone, ${PURGED_KEYS_MAX} at most, and until then they are as good as new`, async () => {
      const later = NOW + 3 * IDEMPOTENCY_KEY_MS;
      const create = (name: string, nowMs: number) =>
        store.create("many", ADA, nowMs, { tokenId: "many", key: name, digest: "01", nowMs }, TEST_ORIGIN);
      // Those of other tests first.
      while ((await store.purgeKeys(later - 1)) > 0);
      const [old, young] = [later - IDEMPOTENCY_KEY_MS, later - IDEMPOTENCY_KEY_MS + 1];
      await Promise.all(Array.from({ length: 1_200 }, (_, index) => create(`${index}`, old)));
      await create("young", young);
      expect(await create("0", later)).toMatchObject({ isReplayed: false });
      const purged = [];
      for (let purge = 0; purge < 4; purge += 1) purged.push(await store.purgeKeys(later));
      expect(purged).toEqual([PURGED_KEYS_MAX, PURGED_KEYS_MAX, 199, 0]);
      expect(await create("young", young)).toMatchObject({ isReplayed: true });
      expect(await create("0", later)).toMatchObject({ isReplayed: true });
    });
  });

  test(`${engine}: the cursor key is 32 bytes`, () => {
    expect(store.cursorKey).toHaveLength(32);
  });
}
