import { afterAll, describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { CustomerChanges, NewCustomer } from "../../domain/customer/customer.ts";
import { FIELD_NAMES, STATUSES } from "../../domain/customer/field-registry.ts";
import { drawRowVersion, type RowVersion } from "../../domain/entity-tag.ts";
import type { MaybePromise } from "../../domain/maybe-promise.ts";
import { NO_BODY, type Projection, projectionOf } from "../../domain/projection.ts";
import { TEST_ORIGIN } from "../../tests/support/service/test-origin.ts";
import type { Storage } from "../storage.ts";
import {
  type CreateOutcome,
  IDEMPOTENCY_KEY_MS,
  type IdempotencyKey,
  PURGED_KEYS_MAX,
  type RemoveOutcome,
  type StoredCustomer,
  type WriteOutcome,
  type WriteTarget,
} from "./customer-store.ts";

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

  async function make(tenant = "t", customer: NewCustomer = ADA) {
    const outcome = await create(tenant, NOW, null, customer);
    if (outcome.kind !== "created") throw new Error(outcome.kind);
    return { tenant, id: outcome.id, expected: outcome.rowVersion };
  }
  const create = (
    tenant: string,
    nowMs = NOW,
    key: IdempotencyKey | null = null,
    customer: NewCustomer = ADA,
  ) => store.create(tenant, customer, nowMs, key, TEST_ORIGIN);
  const update = (
    target: WriteTarget,
    changes: CustomerChanges,
    projection: Projection = NO_BODY,
    key: IdempotencyKey | null = null,
  ) => store.update(target, changes, projection, key, TEST_ORIGIN);
  const remove = (target: WriteTarget, key: IdempotencyKey | null = null) =>
    store.remove(target, key, TEST_ORIGIN);
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
      expect(await update(target, ADA, ALL)).toEqual({ kind: "missing" });
      expect(await update(target, { name: "x" }, ALL)).toEqual({ kind: "missing" });
      expect(await remove(target)).toEqual({ kind: "missing" });
      expect(await remove({ ...target, expected: { anyExcept: [] } })).toEqual({ kind: "missing" });
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
        () => update(target, { name: "B", email: "b@example.com" }, ALL),
        () => update(target, { name: "B", email: "b@example.com" }, ALL), // the same values again
        () => update(target, { status: "closed" }, ALL),
        () => update(target, {}, ALL),
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
        await update(target, changes);
        expect((await read(target))?.fields).toEqual({ id: target.id, ...ADA, ...changes });
      }
    });

    test("a write against any other version is stale, names the stored one and changes nothing", async () => {
      const target = await make();
      const before = await read(target);
      const stale = { ...target, expected: drawRowVersion() };
      const expected = { kind: "stale" as const, rowVersion: target.expected };
      expect(await update(stale, { name: "x", email: "x@x" }, ALL)).toEqual(expected);
      expect(await update(stale, { name: "x" }, ALL)).toEqual(expected);
      expect(await remove(stale)).toEqual(expected);
      expect(await read(target)).toEqual(before);
    });

    test("a version of the past stays stale, also after delete and re-create", async () => {
      const target = await make();
      expect(await remove(target)).toEqual({ kind: "removed", isReplayed: false });
      expect(await read(target)).toBeNull();
      for (const write of [update(target, ADA, ALL), update(target, {}, ALL), remove(target)]) {
        expect(await write).toEqual({ kind: "missing" });
      }
    });

    test("any version writes whatever is stored", async () => {
      const target = await make();
      expect(
        (await update({ ...target, expected: { anyExcept: [] } }, { name: "x", email: "x@x" })).kind,
      ).toBe("applied");
      expect((await update({ ...target, expected: { anyExcept: [] } }, { name: "y" })).kind).toBe("applied");
      expect((await remove({ ...target, expected: { anyExcept: [] } })).kind).toBe("removed");
    });

    test("any version but some writes only where none of those is stored", async () => {
      const target = await make();
      const others = [drawRowVersion(), drawRowVersion()];
      const but = (...anyExcept: RowVersion[]) => ({ ...target, expected: { anyExcept } });
      const stale = { kind: "stale" as const, rowVersion: target.expected };
      const isStored = but(...others, target.expected);
      expect(await update(isStored, { name: "x", email: "x@x" })).toEqual(stale);
      expect(await update(isStored, { name: "x" })).toEqual(stale);
      expect(await remove(isStored)).toEqual(stale);
      expect((await update(but(...others), { name: "x" })).kind).toBe("applied");
      expect((await remove(but(target.expected))).kind).toBe("removed");
      expect(await update(but(...others), { name: "x" })).toEqual({ kind: "missing" });
    });

    test("of many writes against one version at once exactly one is applied", async () => {
      const target = await make();
      const outcomes = await Promise.all(
        Array.from({ length: 50 }, (_, index) => update(target, { name: `n${index}` }, ALL)),
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
        const outcome = await update(target, { name: `r${round}` });
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
        const outcome = await create("order", nowMs);
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
      for (const target of made.slice(1)) await remove(target);
      const outcome = await create("newest", NOW - 1);
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
      await update(second, { name: "x", email: "GRACE@example.com" });
      const found = async (email: string) =>
        (await store.page({ ...query, tenant: "fold", email }, projectionOf(["id"]))).items.map(
          ({ fields }) => fields.id,
        );
      expect(await found("zo\u00eb@example.com")).toEqual([first.id]);
      expect(await found("grace@EXAMPLE.com")).toEqual([second.id]);
      await update({ ...second, expected: { anyExcept: [] } }, { email: "Ada@Example.com" });
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
      ["create", ({ tenant }, key) => create(tenant, NOW, key)],
      ["replace", (target, key) => update(target, { name: "B", email: "b@b" }, ALL, key)],
      ["patch", (target, key) => update(target, { status: "closed" }, projectionOf(["status"]), key)],
      ["remove", remove],
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
        await update(used, { name: "first" }, NO_BODY, key);
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
        const first = await update(target, { name: "B", email: "b@b" }, ALL, key);
        expect(await write(target, { ...key, digest: "02" })).toEqual({ kind: "key-reused" });
        expect(await update(target, { name: "B", email: "b@b" }, ALL, key)).toEqual({
          ...first,
          isReplayed: true,
        } as typeof first);
      },
    );

    test("a replay answers what the first write made, whatever has become of the customer since", async () => {
      const target = await make();
      const key = newKey();
      const first = await update(target, { name: "B", email: "b@b" }, ALL, key);
      if (first.kind !== "applied") throw new Error(first.kind);
      expect(first.fields).toEqual({ id: target.id, name: "B", email: "b@b", status: "active" });
      await update({ ...target, expected: first.rowVersion }, { name: "C" });
      expect(await update(target, { name: "B", email: "b@b" }, ALL, key)).toEqual({
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
          update(at, { name: "B", email: "b@b" }, ALL, under);
        const first = await write(target, key);
        const others = await write(other, othersKey);
        const anyVersion = { ...target, expected: { anyExcept: [] } };
        const bare = await update(anyVersion, { name: "C" }, NO_BODY, bareKey);
        await remove(anyVersion, how === "with a key" ? newKey() : null);
        expect(await write(target, key)).toEqual({
          ...first,
          fields: null,
          isReplayed: true,
        } as typeof first);
        expect(await write(other, othersKey)).toEqual({ ...others, isReplayed: true } as typeof first);
        const again = await update(anyVersion, { name: "C" }, NO_BODY, bareKey);
        expect(again).toEqual({ ...bare, isReplayed: true } as typeof bare);
        expect(await read(target)).toBeNull();
      },
    );

    test("a key is used once a write under it was accepted, for 24 hours, and for its token", async () => {
      const key = newKey();
      const target = await make();
      const isUsed = async (other: Partial<IdempotencyKey> = {}) => store.isKeyUsed({ ...key, ...other });
      expect(await isUsed()).toBe(false);
      await update({ ...target, expected: drawRowVersion() }, { name: "x" }, NO_BODY, key);
      expect(await isUsed()).toBe(false);
      await update(target, { name: "x" }, NO_BODY, key);
      expect(await isUsed({ nowMs: NOW + IDEMPOTENCY_KEY_MS - 1 })).toBe(true);
      expect(await isUsed({ nowMs: NOW + IDEMPOTENCY_KEY_MS })).toBe(false);
      expect(await isUsed({ tokenId: "d" })).toBe(false);
    });

    test("a refused write does not use its key up: it is judged anew", async () => {
      const target = await make();
      const key = newKey();
      const stale = { ...target, expected: drawRowVersion() };
      expect((await update(stale, { name: "x" }, NO_BODY, key)).kind).toBe("stale");
      expect((await remove({ ...target, id: crypto.randomUUID() }, key)).kind).toBe("missing");
      expect(await update(target, { name: "x" }, NO_BODY, { ...key, digest: "02" })).toMatchObject({
        kind: "applied",
        isReplayed: false,
      });
    });

    test("a key is its token's own, and lives 24 hours", async () => {
      const key = newKey();
      const at = (nowMs: number, other: Partial<IdempotencyKey> = {}) =>
        create("keys", nowMs, { ...key, nowMs, ...other });
      const first = await at(NOW);
      expect(await at(NOW, { tokenId: "d" })).toMatchObject({ isReplayed: false });
      expect(await at(NOW + IDEMPOTENCY_KEY_MS - 1)).toEqual({ ...first, isReplayed: true } as typeof first);
      // Still there or not, an expired key is as good as new, for any request.
      const second = await at(NOW + IDEMPOTENCY_KEY_MS, { digest: "02" });
      expect(second).toMatchObject({ kind: "created", isReplayed: false });
      expect(await at(NOW + IDEMPOTENCY_KEY_MS, { digest: "02" })).toEqual({
        ...second,
        isReplayed: true,
      } as typeof first);
    });

    test(`a purge deletes expired keys alone, ${PURGED_KEYS_MAX} at most, and until then they are as good as new`, async () => {
      const later = NOW + 3 * IDEMPOTENCY_KEY_MS;
      const named = (name: string, nowMs: number) =>
        create("many", nowMs, { tokenId: "many", key: name, digest: "01", nowMs });
      // Those of other tests first.
      while ((await store.purgeKeys(later - 1)) > 0);
      const [old, young] = [later - IDEMPOTENCY_KEY_MS, later - IDEMPOTENCY_KEY_MS + 1];
      await Promise.all(Array.from({ length: 1_200 }, (_, index) => named(`${index}`, old)));
      await named("young", young);
      expect(await named("0", later)).toMatchObject({ isReplayed: false });
      const purged = [];
      for (let purge = 0; purge < 4; purge += 1) purged.push(await store.purgeKeys(later));
      expect(purged).toEqual([PURGED_KEYS_MAX, PURGED_KEYS_MAX, 199, 0]);
      expect(await named("young", young)).toMatchObject({ isReplayed: true });
      expect(await named("0", later)).toMatchObject({ isReplayed: true });
    });
  });

  test(`${engine}: the cursor key is 32 bytes`, () => {
    expect(store.cursorKey).toHaveLength(32);
  });
}
