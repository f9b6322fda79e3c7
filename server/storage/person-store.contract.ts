import { afterAll, describe, expect, test } from "bun:test";
import type { CustomerFields } from "../domain/customer/customer.ts";
import type { MaybePromise } from "../domain/maybe-promise.ts";
import { NO_BODY, projectionOf } from "../domain/projection.ts";
import { TEST_ORIGIN } from "../tests/support/service/test-origin.ts";
import { reportOnChain } from "./audit/chain-report.ts";
import { sealBacklog } from "./audit/sealing-timer.ts";
import type { IdempotencyKey } from "./customers/customer-store.ts";
import { exportPerson } from "./person-export.ts";
import { findPerson, isSelected } from "./person-search.ts";
import { PERSON_ERASE, REPLIES_PAGE, VALUES_PAGE } from "./person-store.ts";
import type { Storage } from "./storage.ts";

const NOW = Date.UTC(2026, 0, 1);
const ANY = { anyExcept: [] };
const ALL = projectionOf(["name", "email"]);
const KEEPING = { ...TEST_ORIGIN, keepsValues: true };

/** Every rule of finding, exporting and erasing a person, run on each engine. */
export async function personStoreContract(engine: string, open: () => MaybePromise<Storage>): Promise<void> {
  const storage = await open();
  const { customers, audit, persons } = storage;
  afterAll(() => storage.close());
  let drawn = 0;
  const unique = (kind: string): string => {
    drawn += 1;
    return `${kind}${drawn}`;
  };
  const create = async (tenant: string, email: string, origin = TEST_ORIGIN) => {
    const customer = { name: "Ada", email, status: "active" } as const;
    const made = await customers.create(tenant, customer, NOW, null, { ...origin, operation: "create" });
    if (made.kind !== "created") throw new Error(made.kind);
    return { tenant, id: made.id, expected: ANY };
  };
  const keyOf = (name: string): IdempotencyKey => ({ tokenId: "t", key: name, digest: "01", nowMs: NOW });
  const found = async (who: string, tenants?: readonly string[]) =>
    (await findPerson(storage, tenants ?? (await persons.tenants()), who)).map((one) => [
      ...[one.tenant, one.id, one.state, one.foundBy, one.values, one.keptReplies, isSelected(one)],
    ]);

  const historyOf = (tenant: string, customerId: string) =>
    audit.history({ tenant, customerId, before: null, limit: 9, withValues: true });

  type Exported = {
    readonly pieces: readonly string[];
    readonly customers: readonly { history: object[]; keptReplies: { fields: CustomerFields }[] }[];
  };
  const exported = async (tenant: string, ...who: readonly string[]): Promise<Exported> => {
    const customers = [];
    for (const one of who) customers.push(...(await findPerson(storage, [tenant], one)));
    const pieces = await Array.fromAsync(exportPerson(storage, who, customers));
    return { pieces, ...JSON.parse(pieces.join("\n")) };
  };

  describe(`${engine}: a person`, () => {
    test("is found in each tenant by an email in any case, and by an id", async () => {
      const [first, second, other] = [unique("t"), unique("t"), unique("t")];
      const email = `${unique("Ada")}@Example.com`;
      const [one, two, three] = [
        await create(first, email),
        await create(first, email),
        await create(second, email),
      ];
      await create(other, "someone@example.com");
      expect(await found(email.toUpperCase())).toEqual(
        [one, two, three].map(({ tenant, id }) => [tenant, id, "stored", "email", 0, 0, true]),
      );
      expect(await found(email, [second])).toEqual([[second, three.id, "stored", "email", 0, 0, true]]);
      expect(await found(one.id)).toEqual([[first, one.id, "stored", "id", 0, 0, true]]);
      expect(await found(crypto.randomUUID())).toEqual([]);
      expect(await found("nobody@example.com")).toEqual([]);
    });

    test("is found by an earlier email where values are kept: one who was deleted with it is selected, one with another email afterwards is not", async () => {
      const tenant = unique("t");
      const email = `${unique("eve")}@example.com`;
      const [moved, gone] = [await create(tenant, email, KEEPING), await create(tenant, email, KEEPING)];
      const [another, hidden] = [await create(tenant, email, KEEPING), await create(tenant, email, KEEPING)];
      const silent = await create(tenant, email);
      await customers.update(moved, { email: "new@example.com" }, NO_BODY, null, KEEPING);
      await customers.update(another, { email: "another@example.com" }, NO_BODY, null, KEEPING);
      await customers.update(hidden, { email: "another@example.com" }, NO_BODY, null, TEST_ORIGIN);
      for (const target of [gone, silent, another, hidden]) await customers.remove(target, null, KEEPING);
      const expected = [
        [tenant, moved.id, "stored", "earlier-email", 2, 0, false],
        [tenant, gone.id, "deleted", "last-email", 1, 0, true],
        [tenant, another.id, "deleted", "earlier-email", 2, 0, false],
        [tenant, hidden.id, "deleted", "earlier-email", 1, 0, false],
      ];
      const rows = await found(email.toUpperCase(), [tenant]);
      expect(rows).toHaveLength(4);
      expect(rows).toEqual(expect.arrayContaining(expected));
      expect(await found(silent.id, [tenant])).toEqual([[tenant, silent.id, "deleted", "id", 0, 0, true]]);
    });

    test("is found with the note that it had another email, which may have been another person's", async () => {
      const tenant = unique("t");
      const [changed, same] = [
        await create(tenant, "Eve@example.com", KEEPING),
        await create(tenant, "Ada@example.com", KEEPING),
      ];
      await customers.update(changed, { email: "ada@example.com" }, NO_BODY, null, KEEPING);
      await customers.update(same, { email: "ada@example.com" }, NO_BODY, null, KEEPING);
      const noted = async (who: string) =>
        (await findPerson(storage, [tenant], who)).map(
          ({ id, hasOtherEmail }) => [id, hasOtherEmail] as const,
        );
      const expected = [[changed.id, true] as const, [same.id, false] as const].sort();
      expect((await noted("ada@example.com")).sort()).toEqual(expected);
      for (const target of [changed, same]) await customers.remove(target, null, KEEPING);
      expect((await noted("ada@example.com")).sort()).toEqual(expected);
      for (const [id, hasOther] of expected) expect(await noted(id)).toEqual([[id, hasOther]]);
    });

    test("is exported with all fields, its version, its history and its kept replies, and without tokens", async () => {
      const tenant = unique("t");
      const made = await create(tenant, "ada@example.com", KEEPING);
      const outcome = await customers.update(made, { name: "Eve" }, ALL, keyOf(unique("k")), KEEPING);
      if (outcome.kind !== "applied") throw new Error(outcome.kind);
      const document = (await exported(tenant, made.id)).customers[0];
      expect(document).toMatchObject({
        ...{ tenant, id: made.id, state: "stored" },
        customer: { name: "Eve", email: "ada@example.com", status: "active", version: outcome.rowVersion },
        history: [
          { changed: ["name"], values: { name: { before: "Ada", after: "Eve" } } },
          { operation: "create", client: "tests", versionBefore: null },
        ],
        keptReplies: [{ fields: { name: "Eve", email: "ada@example.com" } }],
      });
      expect(document).toHaveProperty("customer.createdAt", new Date(NOW).toISOString());
      expect(JSON.stringify(document)).not.toContain(TEST_ORIGIN.tokenPrefix);
    });

    test("is erased with all that is kept of it and nobody else, and the audit trail stays whole and says so", async () => {
      const tenant = unique("t");
      const [made, beside] = [
        await create(tenant, "a@example.com", KEEPING),
        await create(tenant, "b@example.com", KEEPING),
      ];
      const key = keyOf(unique("k"));
      await customers.update(made, { name: "Eve" }, ALL, key, KEEPING);
      const before = await customers.rowVersion(tenant, made.id);
      expect(await persons.erase(tenant, made.id)).toEqual({ wasStored: true, keptReplies: 1, values: 2 });
      expect(await customers.rowVersion(tenant, made.id)).toBeNull();
      expect(await customers.update(made, { name: "x" }, NO_BODY, null, TEST_ORIGIN)).toEqual({
        kind: "missing",
      });
      const replayed = await customers.update(made, { name: "Eve" }, ALL, key, KEEPING);
      expect(replayed).toMatchObject({ kind: "applied", isReplayed: true, fields: null });
      await sealBacklog(audit);
      const { items } = await historyOf(tenant, made.id);
      expect(items.map(({ operation, changed, values }) => [operation, changed.length, values])).toEqual([
        ["erase", 0, null],
        ["replace", 1, null],
        ["create", 3, null],
      ]);
      expect(items[0]).toMatchObject({
        client: PERSON_ERASE.client,
        versionBefore: before,
        versionAfter: null,
      });
      expect(await reportOnChain(audit, tenant, null)).toMatchObject({
        ...{ fault: null, values: { kept: 1, erased: 2 } },
      });
      expect(await found(made.id, [tenant])).toEqual([[tenant, made.id, "erased", "id", 0, 0, true]]);
      expect(await found("a@example.com", [tenant])).toEqual([]);
      expect(await customers.rowVersion(tenant, beside.id)).not.toBeNull();
    });

    test("is erased once: a second erasure changes nothing and has no row", async () => {
      const tenant = unique("t");
      const made = await create(tenant, "a@example.com");
      await persons.erase(tenant, made.id);
      expect(await persons.erase(tenant, made.id)).toEqual({ wasStored: false, keptReplies: 0, values: 0 });
      const { items } = await historyOf(tenant, made.id);
      expect(items.map(({ operation }) => operation)).toEqual(["erase", "create"]);
    });

    test("who was deleted before is erased from the audit trail", async () => {
      const tenant = unique("t");
      const made = await create(tenant, "a@example.com", KEEPING);
      await customers.remove(made, null, { ...KEEPING, operation: "delete" });
      expect(await persons.erase(tenant, made.id)).toEqual({ wasStored: false, keptReplies: 0, values: 1 });
      const { items } = await historyOf(tenant, made.id);
      expect(items.map(({ operation, values }) => [operation, values])).toEqual([
        ["erase", null],
        ["delete", null],
        ["create", null],
      ]);
    });

    test("is exported a page after the other, and erased with more values than one transaction deletes", async () => {
      const [tenant, rows] = [unique("t"), VALUES_PAGE + 10];
      const made = await create(tenant, "a@example.com", KEEPING);
      const writes = Array.from({ length: rows - 1 }, (_, index) =>
        customers.update(made, { name: `${index}` }, ALL, keyOf(unique("k")), KEEPING),
      );
      await Promise.all(writes);
      expect(await persons.countKeptReplies(tenant, made.id)).toBe(rows - 1);
      const { pieces, customers: found } = await exported(tenant, made.id, made.id);
      const names = Array.from({ length: rows - 1 }, (_, index) => `${index}`).toSorted();
      for (const { history, keptReplies } of found) {
        expect(history).toHaveLength(rows);
        expect(keptReplies.map(({ fields }) => fields.name).toSorted()).toEqual(names);
      }
      const lengthsOf = (member: string) =>
        pieces.map((piece) => piece.split(`"${member}"`).length - 1).filter(Boolean);
      expect(lengthsOf("operation")).toEqual([VALUES_PAGE, 10, VALUES_PAGE, 10]);
      expect(lengthsOf("keptUntil")).toEqual([REPLIES_PAGE, 9, REPLIES_PAGE, 9]);
      expect(await persons.erase(tenant, made.id)).toMatchObject({ values: rows });
      expect(await persons.countValues(tenant, made.id)).toBe(0);
    });

    test.each([
      ["with", KEEPING],
      ["without", TEST_ORIGIN],
    ])(
      "created %s values keeps nothing of a write that races its erasure: each is applied before it, or finds no customer",
      async (_, created) => {
        for (let round = 0; round < 5; round += 1) {
          const tenant = unique("t");
          const made = await create(tenant, "a@example.com", created);
          const write = (index: number) =>
            customers.update(made, { name: `n${index}` }, ALL, keyOf(unique("k")), KEEPING);
          const early = Array.from({ length: 20 }, (_, index) => write(index));
          const erasing = persons.erase(tenant, made.id);
          const late = Array.from({ length: 20 }, (_, index) => write(20 + index));
          const kinds = new Set((await Promise.all([...early, ...late])).map(({ kind }) => kind));
          expect([...kinds].every((kind) => kind === "applied" || kind === "missing")).toBe(true);
          expect((await erasing).wasStored).toBe(true);
          expect(await persons.record(tenant, made.id)).toBeNull();
          expect(await persons.countValues(tenant, made.id)).toBe(0);
          expect(await persons.keptReplies(tenant, made.id, null)).toEqual([]);
          await sealBacklog(audit);
          const rows = await audit.rows({ tenant, after: 0, limit: 99 });
          expect(rows.at(-1)?.operation).toBe("erase");
          expect((await reportOnChain(audit, tenant, null)).fault).toBeNull();
        }
      },
    );
  });
}
