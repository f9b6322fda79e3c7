import { afterAll, afterEach, beforeEach, describe, expect, test } from "bun:test";
import { PostgresStorage } from "../../../storage/postgres/postgres-storage.ts";
import type { TokenHolder } from "../../../storage/tokens/token-store.ts";
import { FaultyProxy } from "../../support/http/faulty-proxy.ts";
import { PostgresCluster } from "../../support/postgres/postgres-cluster.ts";
import { type Reply, TestService } from "../../support/service/test-service.ts";

// What Prometheus sees of a service whose database does not answer.

const MONITOR = { role: "monitor", client: "prometheus" };
const HOUR_MS = 3_600_000;
const NOW_MS = Date.UTC(2027, 2, 1, 12, 30);
/** Longer than any test may take: a scrape that waits for the database fails its test. */
const PATIENT = { connectMs: 900_000, statementMs: 900_000, giveUpMs: 900_000 };
/** So that a look-up fails soon, also on a busy machine. */
const HASTY = { connectMs: 5_000, statementMs: 2_000, giveUpMs: 3_000 };

const cluster = await PostgresCluster.start();
afterAll(() => cluster.stop());

let url: string;
let proxy: FaultyProxy;
let service: TestService;
let nowMs: number;
beforeEach(async () => {
  nowMs = NOW_MS;
  url = await cluster.createDatabase();
  proxy = await FaultyProxy.start(cluster.port);
});
afterEach(async () => {
  proxy.fault = "none";
  proxy.cut();
  await service.stop();
  proxy.stop();
});

async function start(limits: typeof PATIENT, metricsArePublic = false): Promise<void> {
  const storage = await PostgresStorage.open(proxy.through(url), { limits });
  service = await TestService.start({ storage, metricsArePublic, now: () => nowMs });
}
const scrape = (caller: typeof MONITOR | null = MONITOR): Promise<Reply> =>
  service.send("GET", "/metrics", { caller });

describe("a database that takes what is sent and does not answer", () => {
  test("is shown by scrapes, with a token that it knew before", async () => {
    await start(PATIENT);
    expect((await scrape()).status).toBe(200);
    proxy.fault = "black-hole";
    const replies = [await scrape(), await scrape()];
    expect(replies.map(({ status }) => status)).toEqual([200, 200]);
    expect(replies[1]?.text).toContain("customers_database_statements_waiting");
  });

  test("is shown by scrapes that need no token", async () => {
    await start(PATIENT, true);
    proxy.fault = "black-hole";
    expect((await scrape(null)).status).toBe(200);
  });
});

test("a table that is locked is shown by scrapes", async () => {
  await start(PATIENT);
  await scrape();
  await using session = new Bun.SQL(url, { max: 1 });
  await session.unsafe(
    "BEGIN; SET search_path = customers; LOCK TABLE tokens, write_counts, meta IN ACCESS EXCLUSIVE MODE",
  );
  expect((await scrape()).status).toBe(200);
  await session.unsafe("ROLLBACK");
});

describe("while the database does not answer, a token is not taken", () => {
  const refused = async (caller: Partial<TokenHolder>, path = "/metrics") =>
    (await service.send("GET", path, { caller })).status;

  test("for metrics, an hour after the database knew it", async () => {
    await start(HASTY);
    await scrape();
    proxy.fault = "black-hole";
    nowMs += HOUR_MS - 1;
    expect((await scrape()).status).toBe(200);
    nowMs += 1;
    expect(await refused(MONITOR)).toBe(503);
  });

  test("for metrics, where the database never knew it, or it belongs to a tenant; or for anything else", async () => {
    await start(HASTY);
    await service.token({ ...MONITOR, client: "new" });
    await scrape();
    expect(await refused({})).toBe(403);
    proxy.fault = "black-hole";
    expect(await refused({ ...MONITOR, client: "new" })).toBe(503);
    expect(await refused({})).toBe(503);
    expect(await refused(MONITOR, "/customers")).toBe(503);
  });

  test("for metrics, where the database said last that it is revoked", async () => {
    await start(HASTY);
    await scrape();
    await service.storage.tokens.revoke(await service.token(MONITOR), nowMs);
    expect((await scrape()).status).toBe(401);
    proxy.fault = "black-hole";
    expect(await refused(MONITOR)).toBe(503);
  });
});
