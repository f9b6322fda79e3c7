import { afterAll, describe, expect, test } from "bun:test";
import type { MaybePromise } from "../../domain/maybe-promise.ts";
import { TEST_ORIGIN } from "../../tests/support/service/test-origin.ts";
import type { Storage } from "../storage.ts";
import { drawToken, tokenPrefix } from "./bearer-token.ts";
import type { TokenHolder } from "./token-store.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const NOW_MS = Date.UTC(2027, 0, 15, 12, 34, 56);
const CI: TokenHolder = { client: "ci", role: "viewer", tenant: "acme" };

/**
 * Every rule of a token store, run on each engine.
 *
 * @param open opens the same database each time; the first time it is empty
 */
export async function tokenStoreContract(engine: string, open: () => MaybePromise<Storage>): Promise<void> {
  const storage = await open();
  const { tokens } = storage;
  afterAll(() => storage.close());
  const make = async (holder = CI, expiresAtMs: number | null = null) =>
    (await tokens.create(holder, NOW_MS, expiresAtMs)).token;
  const listed = async (token: string) =>
    (await tokens.list()).find((record) => record.prefix === tokenPrefix(token));
  /** Closing finishes the writes under way, and notes are writes. */
  async function use(token: string, nowMs: number, address?: string): Promise<void> {
    const own = await open();
    await own.tokens.find(token, nowMs, address);
    await own.close();
    // The reads of one turn of the event loop may see one state.
    await new Promise((next) => setImmediate(next));
  }
  const isValid = async (token: string) => (await tokens.find(token, NOW_MS)) !== null;

  describe(`${engine}: a token`, () => {
    test("finds its holder, and nothing but itself does", async () => {
      const token = await make();
      expect(await tokens.find(token, NOW_MS)).toMatchObject(CI);
      const others = [
        drawToken(),
        token.slice(0, -1),
        `${token}A`,
        token.toLowerCase() === token ? token.toUpperCase() : token.toLowerCase(),
        ` ${token}`,
        `${token}\n`,
        token.replace("cst_", "cst-"),
        token.slice(0, 12),
        "",
        "cst_",
      ];
      for (const other of others) expect(await tokens.find(other, NOW_MS)).toBeNull();
    });

    test("has an id of its own, the same each time, which does not show the token", async () => {
      const [one, other] = [await make(), await make()];
      const idOf = async (token: string) => (await tokens.find(token, NOW_MS))?.tokenId ?? "";
      expect(await idOf(one)).toBe(await idOf(one));
      expect(await idOf(one)).not.toBe(await idOf(other));
      expect(await idOf(one)).not.toContain(one.slice(4, 12));
    });

    test("holds until the instant at which it expires", async () => {
      const token = await make(CI, NOW_MS + 1000);
      expect(await tokens.find(token, NOW_MS + 999)).toMatchObject(CI);
      expect(await tokens.find(token, NOW_MS + 1000)).toBeNull();
    });

    test("of no tenant is found like any other", async () => {
      const monitor = { client: "prometheus", role: "monitor", tenant: null };
      expect(await tokens.find(await make(monitor), NOW_MS)).toMatchObject(monitor);
    });

    test("that is revoked is refused at the next request", async () => {
      const token = await make();
      expect(await isValid(token)).toBe(true);
      expect(await tokens.revoke(token, NOW_MS)).toMatchObject({ kind: "revoked", token: CI });
      expect(await isValid(token)).toBe(false);
    });

    test("says whether its tenant is new: one without any token or customer", async () => {
      const isNew = async (tenant: string | null) =>
        (await tokens.create({ ...CI, tenant }, NOW_MS, null)).isTenantNew;
      expect(await isNew("fresh")).toBe(true);
      expect(await isNew("fresh")).toBe(false);
      expect(await isNew(null)).toBe(false);
      await storage.customers.create(
        "peopled",
        { name: "A", email: "a@b", status: "active" },
        NOW_MS,
        null,
        TEST_ORIGIN,
      );
      expect(await isNew("peopled")).toBe(false);
    });
  });

  describe(`${engine}: revoking`, () => {
    /** Of all tokens, the only ones that begin like this. */
    async function pair() {
      for (;;) {
        const [one, other] = [await make(), await make()];
        const prefixes = (await tokens.list()).map(({ prefix }) => prefix);
        const isAlone = (token: string) =>
          prefixes.filter((prefix) => prefix === tokenPrefix(token)).length === 1;
        if (isAlone(one) && isAlone(other)) return [one, other] as const;
      }
    }

    test("takes the first characters of a token, as listed, or all of it", async () => {
      const [one, other] = await pair();
      expect((await tokens.revoke(tokenPrefix(one), NOW_MS)).kind).toBe("revoked");
      expect([await isValid(one), await isValid(other)]).toEqual([false, true]);
      expect((await tokens.revoke(other, NOW_MS)).kind).toBe("revoked");
      expect(await isValid(other)).toBe(false);
    });

    test("of a text that several tokens begin with revokes none and names them", async () => {
      // Of more tokens than there are letters and digits, two begin alike.
      for (let count = 0; count < 80; count += 1) await make();
      const valid = (await tokens.list()).filter(({ revokedAtMs }) => revokedAtMs === null);
      const [, alike] =
        [...Map.groupBy(valid, ({ prefix }) => prefix.slice(0, 5))].find(([, group]) => group.length > 1) ??
        [];
      const text = alike?.[0]?.prefix.slice(0, 5) ?? "";
      const outcome = await tokens.revoke(text, NOW_MS);
      if (outcome.kind !== "ambiguous") throw new Error(outcome.kind);
      expect(outcome.tokens.map(({ prefix }) => prefix).sort()).toEqual(
        (alike ?? []).map(({ prefix }) => prefix).sort(),
      );
      expect((await tokens.list()).filter(({ revokedAtMs }) => revokedAtMs === null)).toEqual(valid);
    });

    test.each(["", "cst_", "cst", "c", "%", "cst_%", "_", "cst_\u0000"])(
      "%j names no token",
      async (text) => {
        const before = await tokens.list();
        expect(await tokens.revoke(text, NOW_MS)).toEqual({ kind: "missing" });
        expect(await tokens.list()).toEqual(before);
      },
    );

    test("of what no token begins with is missing, and so is a token that differs behind its first characters", async () => {
      const token = await make();
      const text = token.slice(0, -1) + (token.endsWith("A") ? "B" : "A");
      expect(await tokens.revoke(text, NOW_MS)).toEqual({ kind: "missing" });
      expect(await tokens.revoke(`${tokenPrefix(token)}xx`, NOW_MS)).toEqual({ kind: "missing" });
      expect(await isValid(token)).toBe(true);
    });

    test("says when, and a revoked token is listed and cannot be revoked again", async () => {
      const token = await make();
      await tokens.revoke(token, NOW_MS);
      expect(await listed(token)).toMatchObject({ ...CI, createdAtMs: NOW_MS, revokedAtMs: NOW_MS });
      expect((await tokens.revoke(token, NOW_MS)).kind).toBe("missing");
    });
  });

  describe(`${engine}: the use of a token`, () => {
    async function lastUsed(token: string, ...usesMs: number[]): Promise<number | null | undefined> {
      for (const nowMs of usesMs) await use(token, nowMs);
      return (await listed(token))?.lastUsedAtMs;
    }

    test("is noted to the hour, and never before the creation", async () => {
      const token = await make();
      expect(await lastUsed(token)).toBeNull();
      expect(await lastUsed(token, NOW_MS, NOW_MS + 1000)).toBe(NOW_MS);
      expect(await lastUsed(token, NOW_MS + HOUR_MS)).toBe(Date.UTC(2027, 0, 15, 13));
    });

    test("is noted with the network that it came from, and keeps that where the address is unknown", async () => {
      const token = await make();
      const lastFrom = async () => (await listed(token))?.lastUsedFrom;
      expect(await lastFrom()).toBeNull();
      await use(token, NOW_MS, "192.0.2.77");
      expect(await lastFrom()).toBe("192.0.2.0/24");
      await use(token, NOW_MS + HOUR_MS);
      expect(await lastFrom()).toBe("192.0.2.0/24");
      await use(token, NOW_MS + 2 * HOUR_MS, "2001:db8:1:2:3:4:5:6");
      expect(await lastFrom()).toBe("2001:db8:1::/48");
    });

    test("of a refused one is not noted", async () => {
      const [revoked, expired] = [await make(), await make(CI, NOW_MS)];
      await tokens.revoke(revoked, NOW_MS);
      for (const token of [revoked, expired]) expect(await lastUsed(token, NOW_MS)).toBeNull();
    });
  });

  describe(`${engine}: the scope of a token`, () => {
    test.each([
      { fields: "name,email", operations: "get,list" },
      { fields: "id", operations: null },
      { fields: null, operations: "delete" },
    ])("%j comes back with its caller and in the list", async (scope) => {
      const token = await make({ ...CI, scope });
      expect(await tokens.find(token, NOW_MS)).toMatchObject({ ...CI, scope });
      expect(await listed(token)).toMatchObject({ scope });
    });

    test("is absent where none was given", async () => {
      const token = await make();
      expect((await tokens.find(token, NOW_MS))?.scope).toBeUndefined();
      expect((await listed(token))?.scope).toBeUndefined();
    });
  });

  describe(`${engine}: the end of a token`, () => {
    test.each([
      { lifetimeMs: 90 * DAY_MS, noticeMs: 14 * DAY_MS },
      { lifetimeMs: 56 * DAY_MS, noticeMs: 14 * DAY_MS },
      { lifetimeMs: 8 * HOUR_MS, noticeMs: 2 * HOUR_MS },
    ])("after $lifetimeMs ms is announced $noticeMs ms before", async ({ lifetimeMs, noticeMs }) => {
      const token = await make(CI, NOW_MS + lifetimeMs);
      const atMs = NOW_MS + lifetimeMs;
      expect(await tokens.find(token, NOW_MS)).toMatchObject({
        expiry: { atMs, noticeFromMs: atMs - noticeMs },
      });
      const isAnnounced = async (nowMs: number) =>
        (await tokens.expiring(nowMs)).some(({ prefix }) => prefix === tokenPrefix(token));
      expect(await isAnnounced(atMs - noticeMs - 1)).toBe(false);
      expect(await isAnnounced(atMs - noticeMs)).toBe(true);
      expect(await isAnnounced(atMs - 1)).toBe(true);
      expect(await isAnnounced(atMs)).toBe(false);
      await tokens.revoke(token, NOW_MS);
      expect(await isAnnounced(atMs - 1)).toBe(false);
    });

    test("is announced for the soonest first", async () => {
      const soon = [];
      for (const days of [40, 20, 30]) soon.push(await make(CI, NOW_MS + days * DAY_MS));
      const named = (await tokens.expiring(NOW_MS + 20 * DAY_MS - 1)).map(({ expiresAtMs }) => expiresAtMs);
      expect(named).toEqual([...named].sort((one, other) => (one ?? 0) - (other ?? 0)));
      expect(named).toContain(NOW_MS + 20 * DAY_MS);
      for (const token of soon) await tokens.revoke(token, NOW_MS);
    });

    test("never comes without one, and is announced to nobody", async () => {
      expect(await tokens.find(await make(), NOW_MS)).toMatchObject({ expiry: null });
    });
  });

  describe(`${engine}: rotating`, () => {
    const rotate = async (
      text: string,
      terms: { overlapMs?: number; lifetimeMs?: number | null | "same" } = {},
      nowMs = NOW_MS,
    ) => {
      const outcome = await tokens.rotate(text, { overlapMs: HOUR_MS, lifetimeMs: "same", ...terms }, nowMs);
      if (outcome.kind !== "rotated") throw new Error(outcome.kind);
      return outcome;
    };

    test("makes a token for the same holder, and the old one is valid until the overlap ends", async () => {
      const holder = { ...CI, scope: { fields: "name", operations: "get" } };
      const old = await make(holder);
      const { token } = await rotate(old);
      expect(token).not.toBe(old);
      expect(await tokens.find(token, NOW_MS + HOUR_MS)).toMatchObject(holder);
      expect(await tokens.find(old, NOW_MS + HOUR_MS - 1)).toMatchObject(holder);
      expect(await tokens.find(old, NOW_MS + HOUR_MS)).toBeNull();
    });

    test("links the two in the list", async () => {
      const old = await make();
      const { token, made, replaced } = await rotate(old);
      const [prefix, oldPrefix] = [tokenPrefix(token), tokenPrefix(old)];
      expect(made).toMatchObject({ ...CI, prefix, createdAtMs: NOW_MS, replacedBy: null, revokedAtMs: null });
      expect(replaced).toMatchObject({
        ...CI,
        prefix: oldPrefix,
        expiresAtMs: NOW_MS + HOUR_MS,
        replacedBy: prefix,
      });
      expect(await listed(token)).toEqual(made);
      expect(await listed(old)).toEqual(replaced);
    });

    test.each<[string, number | null, number | null | "same", number | null]>([
      ["as long as the old one was to be valid", 90 * DAY_MS, "same", 90 * DAY_MS],
      ["until it is revoked, as the old one", null, "same", null],
      ["for another time", 90 * DAY_MS, 30 * DAY_MS, 30 * DAY_MS],
      ["for a time, where the old one had none", null, 30 * DAY_MS, 30 * DAY_MS],
      ["until it is revoked, where the old one ended", 90 * DAY_MS, null, null],
    ])("makes a token that is valid %s", async (_, oldMs, lifetimeMs, newMs) => {
      const old = await make(CI, oldMs === null ? null : NOW_MS + oldMs);
      const laterMs = NOW_MS + 80 * DAY_MS;
      const { made } = await rotate(old, { lifetimeMs }, laterMs);
      expect(made.expiresAtMs).toBe(newMs === null ? null : laterMs + newMs);
    });

    test("lengthens no life: a token that ends before the overlap does, ends then", async () => {
      const ending = await make(CI, NOW_MS + 1000);
      const { replaced } = await rotate(ending);
      expect(replaced.expiresAtMs).toBe(NOW_MS + 1000);
    });

    test("is of no use for a token that has ended: it does not come back by its successor", async () => {
      const [expired, replaced] = [await make(CI, NOW_MS + 1000), await make()];
      await rotate(replaced, { overlapMs: 1000 });
      const terms = { overlapMs: HOUR_MS, lifetimeMs: null };
      for (const token of [expired, replaced]) {
        for (const text of [token, tokenPrefix(token)]) {
          expect(await tokens.rotate(text, terms, NOW_MS + 1000)).toEqual({ kind: "missing" });
        }
        expect(await tokens.revoke(tokenPrefix(token), NOW_MS + 1000)).toMatchObject({ kind: "revoked" });
      }
    });

    test("without an overlap ends the old one at once", async () => {
      const old = await make();
      await rotate(old, { overlapMs: 0 });
      expect(await isValid(old)).toBe(false);
    });

    test("keeps the id, under which idempotency keys are kept, over every rotation", async () => {
      const idOf = async (token: string) => (await tokens.find(token, NOW_MS))?.tokenId ?? "";
      const first = await make();
      const { token: second } = await rotate(first);
      const { token: third } = await rotate(second);
      const { token: again } = await rotate(first);
      expect([await idOf(second), await idOf(third), await idOf(again)]).toEqual(
        Array(3).fill(await idOf(first)),
      );
    });

    test("stops the notice of the old one, since a new one is there", async () => {
      const old = await make(CI, NOW_MS + HOUR_MS);
      const announced = async () => (await tokens.expiring(NOW_MS + HOUR_MS - 1)).map(({ prefix }) => prefix);
      expect(await announced()).toContain(tokenPrefix(old));
      await rotate(old, { lifetimeMs: 90 * DAY_MS });
      expect(await announced()).not.toContain(tokenPrefix(old));
    });

    describe("names the old one as still used", () => {
      const OVERLAP_MS = 8 * HOUR_MS;
      const SOON_MS = NOW_MS + 7 * HOUR_MS;
      const rotated = async () => {
        const old = await make();
        return { old, token: (await rotate(old, { overlapMs: OVERLAP_MS })).token };
      };
      const isNamed = async (token: string, nowMs = SOON_MS) =>
        (await tokens.stillUsed(nowMs)).some(({ prefix }) => prefix === tokenPrefix(token));

      test("in the last quarter of the overlap, until it ends or is revoked", async () => {
        const { old } = await rotated();
        await use(old, NOW_MS + 2 * HOUR_MS);
        expect(await isNamed(old, NOW_MS + 6 * HOUR_MS - 1)).toBe(false);
        expect(await isNamed(old, NOW_MS + 6 * HOUR_MS)).toBe(true);
        expect(await isNamed(old, NOW_MS + OVERLAP_MS)).toBe(false);
        await tokens.revoke(old, NOW_MS);
        expect(await isNamed(old)).toBe(false);
      });

      test("only if it was used after the rotation", async () => {
        const old = await make();
        await use(old, NOW_MS);
        await rotate(old, { overlapMs: OVERLAP_MS });
        expect(await isNamed(old)).toBe(false);
      });

      test("until the new one alone was used for an hour", async () => {
        const { old, token } = await rotated();
        await use(old, NOW_MS + 2 * HOUR_MS);
        await use(token, NOW_MS + 2 * HOUR_MS);
        expect(await isNamed(old)).toBe(true);
        await use(token, NOW_MS + 3 * HOUR_MS);
        expect(await isNamed(old)).toBe(false);
      });
    });

    test("once more, as when the new one was lost, makes one for as long as the first was to be valid", async () => {
      const old = await make(CI, NOW_MS + 90 * DAY_MS);
      const first = await rotate(old);
      const second = await rotate(old, {}, NOW_MS + 1);
      expect(second.made.expiresAtMs).toBe(NOW_MS + 1 + 90 * DAY_MS);
      await rotate(first.token, {}, NOW_MS + 2);
      await tokens.revoke(second.token, NOW_MS + 2);
      const { made } = await rotate(old, {}, NOW_MS + 3);
      expect(made.expiresAtMs).toBe(NOW_MS + 3 + 90 * DAY_MS);
      const endless = await make();
      await rotate(endless);
      expect((await rotate(endless)).made.expiresAtMs).toBeNull();
    });

    test("takes the first characters too; a revoked token, and what names none, is missing", async () => {
      const old = await make();
      await tokens.revoke(old, NOW_MS);
      const terms = { overlapMs: HOUR_MS, lifetimeMs: null };
      const before = await tokens.list();
      for (const text of [old, tokenPrefix(old), "", "cst_", "%", drawToken()]) {
        expect(await tokens.rotate(text, terms, NOW_MS)).toEqual({ kind: "missing" });
      }
      expect(await tokens.list()).toEqual(before);
      const one = await make();
      const { replaced } = await rotate(tokenPrefix(one));
      expect(replaced.prefix).toBe(tokenPrefix(one));
    });

    test("twice at the same moment makes two tokens, both valid", async () => {
      const old = await make();
      const [one, other] = await Promise.all([rotate(old), rotate(old)]);
      expect([await isValid(one.token), await isValid(other.token)]).toEqual([true, true]);
      expect([tokenPrefix(one.token), tokenPrefix(other.token)]).toContain(
        (await listed(old))?.replacedBy ?? "",
      );
    });
  });

  test(`${engine}: tokens are listed in the order of creation`, async () => {
    const holder = { ...CI, client: "order" };
    for (const nowMs of [3, 1, 2]) await tokens.create(holder, nowMs, null);
    const created = (await tokens.list()).filter(({ client }) => client === "order");
    expect(created.map(({ createdAtMs }) => createdAtMs)).toEqual([1, 2, 3]);
  });
}
