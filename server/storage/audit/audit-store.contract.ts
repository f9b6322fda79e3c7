import { afterAll, describe, expect, test } from "bun:test";
import { CHAIN_START, type ChainedEntry, chainFault } from "../../domain/audit/audit-chain.ts";
import type { WriteOrigin } from "../../domain/audit/audit-entry.ts";
import { changedValues, valuesDigest } from "../../domain/audit/kept-values.ts";
import { drawRowVersion } from "../../domain/entity-tag.ts";
import type { MaybePromise } from "../../domain/maybe-promise.ts";
import { NO_BODY } from "../../domain/projection.ts";
import { TEST_ORIGIN } from "../../tests/support/service/test-origin.ts";
import type { IdempotencyKey, WriteTarget } from "../customers/customer-store.ts";
import type { Storage } from "../storage.ts";
import { deleteOldRows } from "./audit-retention.ts";
import {
  type AuditFindings,
  type AuditSearch,
  type AuditStore,
  DELETED_ROWS_MAX,
  type HistoryQuery,
} from "./audit-store.ts";
import { reportOnChain } from "./chain-report.ts";
import { sealBacklog } from "./sealing-timer.ts";

const ADA = { name: "Ada", email: "ada@example.com", status: "active" } as const;
const NOW = Date.UTC(2026, 0, 1);
const ANY = { anyExcept: [] };

/**
 * Every rule of the audit trail, run on each engine.
 *
 * @param run runs SQL on the same database as the service's own role does, and returns the first value as text; it fails
 *   where the database refuses it
 */
export async function auditStoreContract(
  engine: string,
  open: () => MaybePromise<Storage>,
  run: (sql: string) => MaybePromise<unknown>,
): Promise<void> {
  const [storage, second] = [await open(), await open()];
  const { customers, audit } = storage;
  afterAll(async () => {
    await storage.close();
    await second.close();
  });
  let tenants = 0;
  const newTenant = (): string => {
    tenants += 1;
    return `t${tenants}`;
  };
  const create = async (
    tenant: string,
    key: IdempotencyKey | null = null,
    origin: WriteOrigin = { ...TEST_ORIGIN, operation: "create" },
  ) => {
    const made = await customers.create(tenant, ADA, NOW, key, origin);
    if (made.kind !== "created") throw new Error(made.kind);
    return { tenant, id: made.id, expected: made.rowVersion };
  };
  const rows = async (tenant: string): Promise<readonly ChainedEntry[]> => {
    await sealBacklog(audit);
    return audit.rows({ tenant, after: null, limit: 1_000 });
  };
  const valuesLeft = async (tenant: string): Promise<number> =>
    Number(await run(`SELECT count(*) FROM audit_values WHERE tenant = '${tenant}'`));
  const by = (operation: WriteOrigin["operation"], more: Partial<WriteOrigin> = {}): WriteOrigin => ({
    ...TEST_ORIGIN,
    operation,
    ...more,
  });

  describe(`${engine}: the audit trail`, () => {
    test("has a row for each accepted write: who, how, on what, from which version to which, and the names of what changed", async () => {
      const tenant = newTenant();
      const began = Date.now();
      const who = {
        client: "billing-sync",
        tokenPrefix: "cst_ABCDEFGH",
        requestId: "r-1",
        isWithoutIfMatch: true,
      };
      const origin = { ...who, keepsValues: false };
      const made = await create(tenant);
      const versions: (string | null)[] = [made.expected];
      const steps = [
        ["replace", { name: "Ada", email: "b@example.com" }, ["email"]],
        ["patch", { status: "closed", name: "B" }, ["name", "status"]],
        ["patch", {}, []],
        ["replace", { name: "B", email: "b@example.com" }, []],
      ] as const;
      for (const [operation, changes] of steps) {
        const target = { ...made, expected: ANY };
        const outcome = await customers.update(target, changes, NO_BODY, null, { ...origin, operation });
        if (outcome.kind !== "applied") throw new Error(outcome.kind);
        versions.push(outcome.rowVersion);
      }
      await customers.remove({ ...made, expected: ANY }, null, by("delete"));
      const found = await rows(tenant);
      const own = { tenant, customerId: made.id, hasKey: false, valuesDigest: null, values: null };
      const tests = { client: "tests", tokenPrefix: "cst_tests", requestId: "test", isWithoutIfMatch: false };
      const between = (index: number) => ({
        versionBefore: versions[index - 1],
        versionAfter: versions[index],
      });
      const expected: unknown[] = [
        {
          ...{ ...own, ...tests, operation: "create", versionBefore: null, versionAfter: made.expected },
          changed: ["name", "email", "status"],
        },
        ...steps.map(([operation, , changed], index) => ({
          ...{ ...own, ...who, operation, ...between(index + 1) },
          changed,
        })),
        {
          ...{ ...own, ...tests, operation: "delete", versionBefore: versions.at(-1), versionAfter: null },
          changed: [],
        },
      ];
      expect<unknown>(found.map(({ number, hash, timeMs, ...rest }) => rest)).toEqual(expected);
      for (const { timeMs } of found) {
        expect(timeMs).toBeGreaterThanOrEqual(began - 1);
        expect(timeMs).toBeLessThanOrEqual(Date.now() + 1);
      }
    });

    test("keeps the values of the fields that changed where they are wanted, by a digest in the chain, and no others", async () => {
      const tenant = newTenant();
      const keeping = { keepsValues: true };
      const [made, silent] = [await create(tenant, null, by("create", keeping)), await create(tenant)];
      const name = `"O'Neil" \\ {NULL} Zoë 😀`;
      const write = (
        target: WriteTarget,
        changes: object,
        more: Partial<WriteOrigin>,
        key: IdempotencyKey | null = null,
      ) => customers.update({ ...target, expected: ANY }, changes, NO_BODY, key, by("patch", more));
      await write(made, { name, email: "ADA@example.com", status: "active" }, keeping);
      await write(made, { name }, keeping);
      await write(made, { status: "closed" }, keeping, {
        tokenId: "t",
        key: `v-${tenant}`,
        digest: "01",
        nowMs: NOW,
      });
      await write(silent, { name: "B" }, {});
      await customers.remove({ ...made, expected: ANY }, null, by("delete", keeping));
      const keyed = { tokenId: "t", key: `c-${tenant}`, digest: "01", nowMs: NOW };
      await create(tenant, keyed, by("create", keeping));
      const found = await rows(tenant);
      const created = {
        name: { before: null, after: ADA.name },
        email: { before: null, after: ADA.email },
        status: { before: null, after: ADA.status },
      };
      const own = found.filter(({ customerId }) => customerId !== silent.id);
      expect(own.map((row) => row.values && changedValues(row.values, row))).toEqual([
        created,
        { name: { before: "Ada", after: name }, email: { before: ADA.email, after: "ADA@example.com" } },
        null,
        { status: { before: "active", after: "closed" } },
        null,
        created,
      ]);
      const digests = own.map(({ values, valuesDigest: digest }) => [digest, values && valuesDigest(values)]);
      for (const [digest, taken] of digests) expect(digest).toBe(taken ?? null);
      // The same values have another digest: nobody learns from it that two customers hold the same.
      expect(new Set(digests.map(([digest]) => digest)).size).toBe(5);
      for (const { values, valuesDigest } of found.filter(({ customerId }) => customerId === silent.id))
        expect([values, valuesDigest]).toEqual([null, null]);
      const ofMade = { tenant, customerId: made.id, before: null, limit: 9 };
      const history = await audit.history({ ...ofMade, withValues: true });
      const withoutValues = await audit.history({ ...ofMade, withValues: false });
      expect(withoutValues.items).toEqual(history.items.map((item) => ({ ...item, values: null })));
      expect(history.items.map(({ values }) => values)).toEqual(
        own
          .slice(0, 5)
          .reverse()
          .map(({ values }) => values),
      );
      expect(await reportOnChain(audit, tenant, null)).toMatchObject({
        ...{ fault: null, values: { kept: 4, erased: 0 } },
      });
    });

    test.each([
      ["changed", (tenant: string) => `UPDATE audit_values SET content = '{}' WHERE tenant = '${tenant}'`],
      ["deleted", (tenant: string) => `DELETE FROM audit_values WHERE tenant = '${tenant}'`],
    ])("takes no statement by which the values of a customer who is not erased are %s", async (_, sql) => {
      const tenant = newTenant();
      await create(tenant, null, by("create", { keepsValues: true }));
      const before = await rows(tenant);
      expect(before[0]?.values).not.toBeNull();
      await expect((async () => await run(sql(tenant)))()).rejects.toThrow(
        /append-only|keeps the values|permission denied/,
      );
      expect(await rows(tenant)).toEqual(before);
    });

    test("shows of a customer what retention has left, also of one who was removed", async () => {
      const tenant = newTenant();
      const made = await create(tenant);
      await create(tenant);
      for (const name of ["B", "C"])
        await customers.update({ ...made, expected: ANY }, { name }, NO_BODY, null, TEST_ORIGIN);
      await customers.remove({ ...made, expected: ANY }, null, by("delete"));
      const found = await rows(tenant);
      const own = found.filter(({ customerId }) => customerId === made.id).toReversed();
      const shown = async () => {
        const query = { tenant, customerId: made.id, before: null, limit: 9, withValues: false };
        return (await audit.history(query)).items.map(({ versionBefore }) => versionBefore);
      };
      for (const [before, last] of [null, ...found].entries()) {
        if (last !== null) expect(await audit.moveStart(found[before - 2] ?? CHAIN_START, last)).toBe(true);
        const left = own.filter(({ number }) => number > (last?.number ?? 0));
        expect(await shown()).toEqual(left.map(({ versionBefore }) => versionBefore));
        expect((await reportOnChain(audit, tenant, null)).fault).toBeNull();
      }
    });

    test("loses values with their rows to retention", async () => {
      const tenant = newTenant();
      for (let n = 0; n < 2; n += 1) await create(tenant, null, by("create", { keepsValues: true }));
      const [first, kept] = await rows(tenant);
      if (first === undefined || kept === undefined) throw new Error("no rows");
      expect(await audit.moveStart(CHAIN_START, first)).toBe(true);
      expect(await rows(tenant)).toEqual([kept]);
      expect(await valuesLeft(tenant)).toBe(1);
    });

    test("has no row for a refused write, and none for one that is repeated under its key", async () => {
      const tenant = newTenant();
      const key: IdempotencyKey = { tokenId: "t", key: `k-${tenant}`, digest: "01", nowMs: NOW };
      const other = { ...key, key: `other-${tenant}` };
      const made = await create(tenant, other);
      const stale: WriteTarget = { ...made, expected: drawRowVersion() };
      await customers.update(stale, { name: "x" }, NO_BODY, null, TEST_ORIGIN);
      await customers.remove(stale, null, TEST_ORIGIN);
      await customers.update({ ...made, id: crypto.randomUUID() }, {}, NO_BODY, null, TEST_ORIGIN);
      await customers.update(made, { name: "B" }, NO_BODY, key, TEST_ORIGIN);
      await customers.update(made, { name: "B" }, NO_BODY, key, by("replace", { requestId: "again" }));
      await customers.update(made, { name: "C" }, NO_BODY, { ...key, digest: "02" }, TEST_ORIGIN);
      await create(tenant, other);
      const found = await rows(tenant);
      expect(found.map(({ operation, hasKey, requestId }) => [operation, hasKey, requestId])).toEqual([
        ["create", true, "test"],
        ["replace", true, "test"],
      ]);
    });

    test("is a chain for each tenant, from 1 and without gaps, whatever writes at once on whichever service", async () => {
      const [tenant, beside] = [newTenant(), newTenant()];
      const targets = await Promise.all(Array.from({ length: 8 }, () => create(tenant)));
      await create(beside);
      let isOver = false;
      const sealing = Promise.all(
        [storage, second].map(async (one) => {
          while (!isOver) {
            await one.audit.seal();
            await new Promise(setImmediate);
          }
        }),
      );
      const writes = Array.from({ length: 240 }, (_, index) => {
        const { customers: store } = index % 2 === 0 ? storage : second;
        const target = targets[index % targets.length];
        if (target === undefined) throw new Error("no target");
        return store.update({ ...target, expected: ANY }, { name: `${index}` }, NO_BODY, null, TEST_ORIGIN);
      });
      const applied = (await Promise.all(writes)).filter(({ kind }) => kind === "applied").length;
      isOver = true;
      await sealing;
      expect(applied).toBe(240);
      const found = await rows(tenant);
      expect(found).toHaveLength(248);
      let previous = CHAIN_START;
      for (const row of found) {
        expect(chainFault(previous, row)).toBeNull();
        previous = row;
      }
      for (const { id } of targets) {
        const own = found.filter(({ customerId }) => customerId === id);
        const before = own.map(({ versionBefore }) => versionBefore);
        expect(before).toEqual([null, ...own.slice(0, -1).map(({ versionAfter }) => versionAfter)]);
        expect(own.at(-1)?.versionAfter).toBe(await customers.rowVersion(tenant, id));
      }
      expect(await rows(beside)).toHaveLength(1);
    });

    test("is read in pages", async () => {
      const tenant = newTenant();
      for (let made = 0; made < 5; made += 1) await create(tenant);
      await rows(tenant);
      const page = async (after: number, limit: number) =>
        (await audit.rows({ tenant, after, limit })).map(({ number }) => number);
      expect(await page(0, 2)).toEqual([1, 2]);
      expect(await page(2, 2)).toEqual([3, 4]);
      expect(await page(5, 2)).toEqual([]);
      const known = await audit.tenants();
      expect(known).toContain(tenant);
      expect(known).toEqual([...known].sort());
    });

    test("is searched in parts, by customer, client and time", async () => {
      const tenant = newTenant();
      const [one, other] = [await create(tenant), await create(tenant)];
      for (const [target, client] of [
        [one, "a"],
        [other, "a"],
        [one, "b"],
        [one, "a"],
      ] as const) {
        const origin = by("patch", { client, keepsValues: client === "a" });
        await customers.update({ ...target, expected: ANY }, { name: client }, NO_BODY, null, origin);
      }
      const all = await rows(tenant);
      const everything = {
        customerId: null,
        client: null,
        fromMs: Number.MIN_SAFE_INTEGER,
        untilMs: Number.MAX_SAFE_INTEGER,
      };
      const search = async (filter: Partial<AuditSearch>, limit = 2) => {
        const parts: (readonly ChainedEntry[])[] = [];
        for (let after: number | null = 0; after !== null; ) {
          const found: AuditFindings = await audit.search({ tenant, ...everything, ...filter, after, limit });
          if (found.last !== null) parts.push(found.rows);
          else expect(found.rows).toEqual([]);
          after = found.last;
        }
        return parts;
      };
      expect(await search({})).toEqual([all.slice(0, 2), all.slice(2, 4), all.slice(4)]);
      const own = all.filter(({ customerId }) => customerId === one.id);
      expect(own).toHaveLength(4);
      for (const limit of [1, 3]) expect((await search({ customerId: one.id }, limit)).flat()).toEqual(own);
      expect(await search({ client: "none" })).toEqual([[], [], []]);
      for (const client of ["a", "b", "tests"]) {
        const found = await search({ client });
        expect(found.flat()).toEqual(all.filter((row) => row.client === client));
        const both = await search({ client, customerId: one.id }, 1);
        expect(both.flat()).toEqual(own.filter((row) => row.client === client));
      }
      for (const { timeMs } of all) {
        const from = await search({ fromMs: timeMs });
        expect(from.flat()).toEqual(all.filter((row) => row.timeMs >= timeMs));
        const until = await search({ untilMs: timeMs });
        expect(until.flat()).toEqual(all.filter((row) => row.timeMs < timeMs));
      }
      expect(await search({ tenant: newTenant() })).toEqual([]);
    });

    test("shows the history of a customer in pages, the newest first, before it is sealed too", async () => {
      const tenant = newTenant();
      const [made, beside] = [await create(tenant), await create(tenant)];
      const names = ["a", "b", "c"];
      for (const name of names) {
        const origin = by("patch", { requestId: name });
        await customers.update({ ...made, expected: ANY }, { name }, NO_BODY, null, origin);
      }
      await customers.remove({ ...beside, expected: ANY }, null, by("delete"));
      const page = async (before: string | null, limit: number, other: Partial<HistoryQuery> = {}) => {
        const query = { tenant, customerId: made.id, before, limit, withValues: true, ...other };
        const { items, last } = await audit.history(query);
        return { shown: items.map(({ operation, requestId }) => `${operation} ${requestId}`), last };
      };
      const first = await page(null, 2);
      expect(first).toEqual({ shown: ["patch c", "patch b"], last: expect.any(String) });
      await rows(tenant);
      expect(await page(first.last, 2)).toEqual({ shown: ["patch a", "create test"], last: null });
      expect((await page(null, 9)).shown).toHaveLength(4);
      const gone = await page(null, 9, { customerId: beside.id });
      expect(gone.shown).toEqual(["delete test", "create test"]);
      expect(await page(null, 9, { tenant: newTenant() })).toEqual({ shown: [], last: null });
    });

    test.each([
      ["changed", (tenant: string) => `UPDATE audit SET client = 'x' WHERE tenant = '${tenant}'`],
      ["given another place", (tenant: string) => `UPDATE audit SET number = 9 WHERE tenant = '${tenant}'`],
      ["deleted", (tenant: string) => `DELETE FROM audit WHERE tenant = '${tenant}'`],
    ])("takes no statement by which a row is %s", async (_, sql) => {
      const tenant = newTenant();
      await create(tenant);
      const before = await rows(tenant);
      await expect((async () => await run(sql(tenant)))()).rejects.toThrow(/append-only|permission denied/);
      expect(await rows(tenant)).toEqual(before);
    });

    test("is found in order, and a head that was kept elsewhere shows what was cut off or made anew", async () => {
      const tenant = newTenant();
      for (let count = 0; count < 3; count += 1) await create(tenant);
      const [, at2, at3] = await rows(tenant);
      if (at2 === undefined || at3 === undefined) throw new Error("no rows");
      const head = { number: 3, hash: at3.hash };
      const start = { ...CHAIN_START, timeMs: null };
      expect(await reportOnChain(audit, tenant, null)).toEqual({
        ...{ tenant, start, rows: 3, head, fault: null },
        values: { kept: 0, erased: 0 },
      });
      const faultFor = async (known: { number: number; hash: string }) =>
        (await reportOnChain(audit, tenant, known)).fault;
      expect(await faultFor({ number: 2, hash: at2.hash })).toBeNull();
      expect(await faultFor({ number: 2, hash: at3.hash })).toMatch(/^row 2 is not the one/);
      expect(await faultFor({ number: 5, hash: at3.hash })).toMatch(/^rows 4 to 5 were there/);
    });

    /** @returns the rows of a tenant with a chain of so many */
    const fill = async (tenant: string, count: number): Promise<readonly ChainedEntry[]> => {
      await Promise.all(Array.from({ length: count }, () => create(tenant)));
      return await rows(tenant);
    };

    test("loses the rows before a time to retention and no younger one, and the rest is a whole chain", async () => {
      const tenant = newTenant();
      const beside = await fill(newTenant(), 1);
      const [first, second] = await fill(tenant, 2);
      // The clock of the store: rows after this have another time.
      while (Date.now() <= (second?.timeMs ?? 0) + 1) await new Promise(setImmediate);
      const before = await fill(tenant, 3);
      if (first === undefined || second === undefined) throw new Error("no rows");
      const kept = before.slice(2);
      expect(await deleteOldRows(audit, tenant, first.timeMs)).toEqual({ deleted: 0, fault: null });
      expect(await rows(tenant)).toEqual(before);
      expect(await deleteOldRows(audit, tenant, second.timeMs + 1)).toEqual({ deleted: 2, fault: null });
      expect(await rows(tenant)).toEqual(kept);
      expect(await rows(beside[0]?.tenant ?? "")).toEqual(beside);
      const start = { number: 2, hash: second.hash, timeMs: second.timeMs };
      expect(await audit.chainStart(tenant)).toEqual(start);
      const after = [...kept, ...(await fill(tenant, 1)).slice(-1)];
      expect(after.map(({ number }) => number)).toEqual([3, 4, 5, 6]);
      const found = await reportOnChain(audit, tenant, { number: 1, hash: first.hash });
      expect(found).toMatchObject({ start, rows: 4, head: { number: 6 }, fault: null });
      const history = { tenant, customerId: first.customerId, before: null, limit: 9, withValues: true };
      expect(await audit.history(history)).toEqual({ items: [], last: null });
      const another = await reportOnChain(audit, tenant, { number: 2, hash: first.hash });
      expect(another.fault).toMatch(/^row 2 is not the one/);
    });

    test("goes on from its number and hash when retention has deleted every row", async () => {
      const tenant = newTenant();
      const last = (await fill(tenant, 2)).at(-1);
      expect(await deleteOldRows(audit, tenant, Number.MAX_SAFE_INTEGER)).toMatchObject({ deleted: 2 });
      expect(await rows(tenant)).toEqual([]);
      expect(await audit.tenants()).toContain(tenant);
      expect(await reportOnChain(audit, tenant, null)).toMatchObject({
        rows: 0,
        head: { number: 2 },
        fault: null,
      });
      const [next] = await fill(tenant, 1);
      if (last === undefined || next === undefined) throw new Error("no rows");
      expect(chainFault(last, next)).toBeNull();
    });

    test("is begun to be deleted by one of several services at once, and the others leave it", async () => {
      for (let begun = 0; begun < 100; begun += 1) {
        const tenant = newTenant();
        await fill(tenant, 1);
        const racers = [audit, second.audit, audit, second.audit];
        const ends = await Promise.all(
          racers.map((one) => deleteOldRows(one, tenant, Number.MAX_SAFE_INTEGER)),
        );
        expect(ends.map(({ deleted }) => deleted).toSorted()).toEqual([0, 0, 0, 1]);
        expect(ends.map(({ fault }) => fault)).toEqual([null, null, null, null]);
      }
    });

    test("loses a bounded number of rows at once, and each once however many services delete", async () => {
      const tenant = newTenant();
      const before = await fill(tenant, DELETED_ROWS_MAX + 20);
      const ends = await Promise.all(
        [audit, second.audit, audit].map((one) => deleteOldRows(one, tenant, Number.MAX_SAFE_INTEGER)),
      );
      const deleted = ends.reduce((sum, end) => sum + end.deleted, 0);
      expect(Math.max(...ends.map((end) => end.deleted))).toBe(DELETED_ROWS_MAX);
      expect(await audit.rows({ tenant, after: null, limit: 1_000 })).toEqual(before.slice(deleted));
      expect(await reportOnChain(audit, tenant, null)).toMatchObject({
        fault: null,
        head: { number: before.length },
      });
    });

    test("loses no row from a start that another service has moved meanwhile", async () => {
      const tenant = newTenant();
      const [one, two, three] = await fill(tenant, 3);
      if (one === undefined || two === undefined || three === undefined) throw new Error("no rows");
      expect(await audit.moveStart(CHAIN_START, two)).toBe(true);
      expect(await audit.moveStart(CHAIN_START, one)).toBe(false);
      expect(await audit.moveStart(CHAIN_START, three)).toBe(false);
      expect(await rows(tenant)).toEqual([three]);
    });

    test("takes no statement that deletes a row after the start of the chain, or moves the start back", async () => {
      const tenant = newTenant();
      const [, at2, at3] = await fill(tenant, 3);
      if (at2 === undefined || at3 === undefined) throw new Error("no rows");
      expect(await audit.moveStart(CHAIN_START, at2)).toBe(true);
      for (const sql of [
        `DELETE FROM audit WHERE tenant = '${tenant}'`,
        `UPDATE audit_anchors SET number = 1 WHERE tenant = '${tenant}'`,
        `DELETE FROM audit_anchors WHERE tenant = '${tenant}'`,
      ]) {
        await expect((async () => await run(sql))()).rejects.toThrow(/append-only|permission denied/);
      }
      expect(await rows(tenant)).toEqual([at3]);
    });

    test.each([
      ["with a number of no row", "one.tenant, one.number + 5000, one.hash, one.time"],
      ["with the hash of another row", "one.tenant, one.number, other.hash, one.time"],
      ["with another time than its row", "one.tenant, one.number, one.hash, one.time - 86400000"],
    ])("takes no start of the chain %s, neither as the first one nor as a later one", async (_, values) => {
      const tenant = newTenant();
      const [, at2] = await fill(tenant, 4);
      if (at2 === undefined) throw new Error("no rows");
      const set = (number: number) => `INSERT INTO audit_anchors (tenant, number, hash, time)
        SELECT ${values} FROM audit one JOIN audit other ON other.tenant = one.tenant AND other.number = 4
        WHERE one.tenant = '${tenant}' AND one.number = ${number}
        ON CONFLICT (tenant) DO UPDATE SET number = excluded.number, hash = excluded.hash, time = excluded.time`;
      const refused = async (sql: string) =>
        await expect((async () => await run(sql))()).rejects.toThrow("append-only");
      await refused(set(1));
      expect(await audit.moveStart(CHAIN_START, at2)).toBe(true);
      await refused(set(3));
      expect(await rows(tenant)).toHaveLength(2);
    });

    test("is found out of order where rows before its start are still there, which retention leaves as they are", async () => {
      const tenant = newTenant();
      const [, at2, at3, at4] = await fill(tenant, 4);
      if (at2 === undefined || at3 === undefined || at4 === undefined) throw new Error("no rows");
      await run(`INSERT INTO audit_anchors (tenant, number, hash, time)
        SELECT tenant, number, hash, time FROM audit WHERE tenant = '${tenant}' AND number = 3`);
      const fault = async () => (await reportOnChain(audit, tenant, null)).fault;
      expect(await fault()).toBe("row 1 is there, though the chain begins with row 4");
      await run(`DELETE FROM audit WHERE tenant = '${tenant}' AND number = 1`);
      const isLeft = "row 2 is there, though the chain begins with row 4";
      expect(await fault()).toBe(isLeft);
      expect(await audit.moveStart(at3, at4)).toBe(true);
      expect(await fault()).toBe("row 2 is there, though the chain begins with row 5");
      expect(await rows(tenant)).toEqual([at2, at3]);
    });

    test.each([0, -1])("takes no row with the number %i", async (number) => {
      const tenant = newTenant();
      const before = await fill(tenant, 1);
      const columns = `client, token_prefix, request_id, operation, customer_id, version_before, version_after, changed,
        without_if_match, with_key, values_digest, hash`;
      const sql = `INSERT INTO audit (tenant, number, time, ${columns})
        SELECT tenant, ${number}, time, ${columns} FROM audit WHERE tenant = '${tenant}'`;
      await expect((async () => await run(sql))()).rejects.toThrow(/append-only|violates check constraint/);
      expect(await rows(tenant)).toEqual(before);
    });

    test("is found in order while retention deletes rows that are being read", async () => {
      const tenant = newTenant();
      const [one, two] = await fill(tenant, 3);
      if (one === undefined || two === undefined) throw new Error("no rows");
      let isFirst = true;
      const racing: AuditStore = {
        ...bound(audit),
        rows: async (query) => {
          if (isFirst) await audit.moveStart(CHAIN_START, two);
          isFirst = false;
          return await audit.rows(query);
        },
      };
      const found = await reportOnChain(racing, tenant, { number: 1, hash: one.hash });
      expect(found).toMatchObject({ start: { number: 2 }, rows: 1, head: { number: 3 }, fault: null });
    });
  });
}

/** The methods of a store, so that a test can put its own in the place of one. */
function bound(audit: AuditStore): AuditStore {
  return {
    isSealedLater: audit.isSealedLater,
    seal: audit.seal.bind(audit),
    tenants: audit.tenants.bind(audit),
    chainStart: audit.chainStart.bind(audit),
    hadCustomers: audit.hadCustomers.bind(audit),
    isErased: audit.isErased.bind(audit),
    countStrayValues: audit.countStrayValues.bind(audit),
    countBrokenLinks: audit.countBrokenLinks.bind(audit),
    history: audit.history.bind(audit),
    rows: audit.rows.bind(audit),
    search: audit.search.bind(audit),
    moveStart: audit.moveStart.bind(audit),
  };
}
