import { afterAll, afterEach, describe, expect, test } from "bun:test";
import { scrape } from "../tests/support/service/metric-series.ts";
import { TestService } from "../tests/support/service/test-service.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const NOW_MS = Date.UTC(2027, 2, 1, 12);
const END_MS = NOW_MS + 100 * DAY_MS;
const ORIGIN = "https://app.example.com";

let nowMs = NOW_MS;
const service = await TestService.start({ now: () => nowMs, corsOrigins: [ORIGIN] });
const open = await TestService.start({ now: () => nowMs, metricsArePublic: true });
afterEach(() => {
  nowMs = NOW_MS;
});
afterAll(async () => {
  await service.stop();
  await open.stop();
});

const holder = { client: "sync", role: "admin", tenant: "acme" };
const ending = async (of = service) => (await of.storage.tokens.create(holder, NOW_MS, END_MS)).token;
const as = (token: string) => ({
  caller: null,
  headers: { authorization: `Bearer ${token}`, origin: ORIGIN },
});

describe("Token-Expires", () => {
  test("is in each reply to the token, refusals too, from 14 days before its end", async () => {
    const token = await ending();
    const { path, etag } = await service.customer();
    const seen = async (): Promise<(string | null)[]> => {
      const { headers } = as(token);
      const replies = [
        await service.send("GET", path, as(token)),
        await service.send("GET", path, { caller: null, headers: { ...headers, "if-none-match": etag } }),
        await service.send("GET", "/customers", as(token)),
        await service.send("DELETE", path, as(token)),
        await service.send("GET", "/metrics", as(token)),
        await service.send("OPTIONS", path, as(token)),
      ];
      expect(replies.map(({ status }) => status)).toEqual([200, 304, 200, 428, 403, 204]);
      return replies.map((reply) => reply.headers.get("token-expires"));
    };
    nowMs = END_MS - 14 * DAY_MS - 1;
    expect(await seen()).toEqual(Array(6).fill(null));
    nowMs = END_MS - 14 * DAY_MS;
    expect(await seen()).toEqual(Array(6).fill("Wed, 09 Jun 2027 12:00:00 GMT"));
  });

  test("is in no reply to another caller, to none, or after the end", async () => {
    const token = await ending();
    nowMs = END_MS - DAY_MS;
    for (const options of [{}, { caller: null }]) {
      expect((await service.send("GET", "/customers", options)).headers.has("token-expires")).toBe(false);
    }
    expect((await service.send("GET", "/healthz", as(token))).headers.has("token-expires")).toBe(false);
    nowMs = END_MS;
    const refused = await service.send("GET", "/customers", as(token));
    expect([refused.status, refused.headers.has("token-expires")]).toEqual([401, false]);
  });

  test("comes only with what no cache may give to another caller, and pages may read it", async () => {
    const token = await ending();
    nowMs = END_MS - DAY_MS;
    const { headers } = await service.send("GET", "/customers", as(token));
    expect(headers.get("cache-control")).toContain("private, no-cache");
    expect(headers.get("vary")).toContain("Authorization");
    expect(headers.get("access-control-expose-headers")).toContain("Token-Expires");
  });
});

describe("customers_token_expiry_seconds", () => {
  const named = async (): Promise<string[]> =>
    [...(await scrape(service))].flatMap(([series, value]) =>
      series.startsWith("customers_token_expiry_seconds") && value * 1000 === END_MS ? [series] : [],
    );

  test("names a token from 14 days before its end until it is rotated", async () => {
    const token = await ending();
    const series = `customers_token_expiry_seconds{client="sync",tenant="acme",token="${token.slice(0, 12)}"}`;
    nowMs = END_MS - 14 * DAY_MS - 1;
    expect(await named()).toEqual([]);
    nowMs = END_MS - 14 * DAY_MS;
    expect(await named()).toContain(series);
    await service.storage.tokens.rotate(token, { overlapMs: DAY_MS, lifetimeMs: "same" }, nowMs);
    expect(await named()).not.toContain(series);
  });

  test("names no caller where anyone may read it: the end that comes first, NaN without one", async () => {
    const text = async () =>
      (await open.send("GET", "/metrics", { caller: null })).text.match(
        /^customers_token_expiry_seconds.*$/m,
      )?.[0];
    await open.storage.tokens.create(holder, NOW_MS, END_MS + DAY_MS);
    await ending(open);
    expect(await text()).toBe("customers_token_expiry_seconds Nan");
    nowMs = END_MS - DAY_MS;
    expect(await text()).toBe(`customers_token_expiry_seconds ${END_MS / 1000}`);
  });
});

test("customers_rotated_token_expiry_seconds names a rotated token that is used shortly before its end", async () => {
  const token = await ending();
  const { tokens } = service.storage;
  await tokens.rotate(token, { overlapMs: 8 * HOUR_MS, lifetimeMs: "same" }, NOW_MS);
  const named = async () =>
    (await scrape(service)).get(
      `customers_rotated_token_expiry_seconds{client="sync",tenant="acme",token="${token.slice(0, 12)}"}`,
    );
  nowMs = NOW_MS + 7 * HOUR_MS;
  expect(await named()).toBeUndefined();
  await service.send("GET", "/customers", as(token));
  // A write waits for the note of the use, which was made before it.
  await service.customer();
  expect(await named()).toBe((NOW_MS + 8 * HOUR_MS) / 1000);
});
