import { afterAll, describe, expect, test } from "bun:test";
import type { MaybePromise } from "../domain/maybe-promise.ts";
import { drawToken, tokenPrefix } from "./bearer-token.ts";
import type { Storage } from "./storage.ts";
import type { TokenHolder } from "./token-store.ts";

const HOUR_MS = 3_600_000;
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
      await storage.customers.create("peopled", { name: "A", email: "a@b", status: "active" }, NOW_MS, null);
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
    /** Closing finishes the writes under way, and notes are writes. */
    async function lastUsed(token: string, ...usesMs: number[]): Promise<number | null | undefined> {
      const own = await open();
      for (const nowMs of usesMs) await own.tokens.find(token, nowMs);
      await own.close();
      // The reads of one turn of the event loop may see one state.
      await new Promise((next) => setImmediate(next));
      return (await listed(token))?.lastUsedAtMs;
    }

    test("is noted to the hour, and never before the creation", async () => {
      const token = await make();
      expect(await lastUsed(token)).toBeNull();
      expect(await lastUsed(token, NOW_MS, NOW_MS + 1000)).toBe(NOW_MS);
      expect(await lastUsed(token, NOW_MS + HOUR_MS)).toBe(Date.UTC(2027, 0, 15, 13));
    });

    test("of a refused one is not noted", async () => {
      const [revoked, expired] = [await make(), await make(CI, NOW_MS)];
      await tokens.revoke(revoked, NOW_MS);
      for (const token of [revoked, expired]) expect(await lastUsed(token, NOW_MS)).toBeNull();
    });
  });

  test(`${engine}: tokens are listed in the order of creation`, async () => {
    const holder = { ...CI, client: "order" };
    for (const nowMs of [3, 1, 2]) await tokens.create(holder, nowMs, null);
    const created = (await tokens.list()).filter(({ client }) => client === "order");
    expect(created.map(({ createdAtMs }) => createdAtMs)).toEqual([1, 2, 3]);
  });
}
