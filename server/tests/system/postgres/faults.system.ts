import { afterAll, afterEach, beforeEach, describe, expect, test } from "bun:test";
import type { RowVersion } from "../../../domain/entity-tag.ts";
import { NO_BODY, projectionOf } from "../../../domain/projection.ts";
import {
  type CustomerStore,
  StoreUnavailable,
  type WriteTarget,
} from "../../../storage/customers/customer-store.ts";
import { PostgresStorage } from "../../../storage/postgres/postgres-storage.ts";
import type { ServerEvent } from "../../../storage/storage.ts";
import { FaultyProxy } from "../../support/http/faulty-proxy.ts";
import { PostgresCluster } from "../../support/postgres/postgres-cluster.ts";
import { Workplace } from "../../support/service/server-process.ts";
import { TEST_ORIGIN } from "../../support/service/test-origin.ts";

// What a network and a server do to statements: one storage
// behind a proxy with faults, and one that has none.

const ADA = { name: "Ada", email: "ada@example.com", status: "active" } as const;
const NAME = projectionOf(["name"]);
/** So that no test waits for a limit. */
const limits = { connectMs: 300, statementMs: 500, giveUpMs: 2_000 };

const cluster = await PostgresCluster.start();
afterAll(() => cluster.stop());

let url: string;
let proxy: FaultyProxy;
let faulty: PostgresStorage;
let sound: PostgresStorage;
let store: CustomerStore;
/** What the storage behind the proxy reported. */
let events: ServerEvent[];
beforeEach(async () => {
  events = [];
  url = await cluster.createDatabase();
  proxy = await FaultyProxy.start(cluster.port);
  sound = await PostgresStorage.open(url);
  faulty = await PostgresStorage.open(proxy.through(url), {
    limits,
    onServerEvent: (event) => events.push(event),
  });
  store = faulty.customers;
});
afterEach(async () => {
  proxy.fault = "none";
  await Promise.all([faulty.close(), sound.close()]);
  proxy.stop();
});

async function make(): Promise<WriteTarget & { expected: RowVersion }> {
  const made = await sound.customers.create("t", ADA, Date.now(), null, TEST_ORIGIN);
  if (made.kind !== "created") throw new Error(made.kind);
  return { tenant: "t", id: made.id, expected: made.rowVersion };
}

/**
 * Prepares the statements of the writes below, so that the answer that is lost is that of the write itself.
 */
async function prepare(): Promise<void> {
  const target = { ...(await make()), expected: { anyExcept: [] } };
  await store.update(target, { name: "x" }, NAME, null, TEST_ORIGIN);
  await store.update(target, { name: "x" }, NO_BODY, null, TEST_ORIGIN);
  await store.create("t", ADA, Date.now(), null, TEST_ORIGIN);
  await store.remove(target, null, TEST_ORIGIN);
}

/** Loses the answers to whatever is sent from now on, until `meanwhile` is over. */
async function losingAnswers<T>(write: () => Promise<T>, meanwhile: () => Promise<void>): Promise<T> {
  proxy.fault = "lost-answer";
  const writing = write();
  // A failure is looked at below, whatever comes first.
  writing.catch(() => {});
  while (proxy.lostAnswers === 0) await new Promise(setImmediate);
  await meanwhile();
  proxy.fault = "none";
  return await writing;
}

describe("the answer to a write is lost", () => {
  test("nobody else wrote: it was applied, once, with what it made", async () => {
    await prepare();
    const target = await make();
    const outcome = await losingAnswers(
      () => store.update(target, { name: "B" }, NAME, null, TEST_ORIGIN),
      async () => {},
    );
    if (outcome.kind !== "applied") throw new Error(outcome.kind);
    expect(outcome.fields).toEqual({ name: "B" });
    expect(await sound.customers.read("t", target.id, NAME)).toEqual({
      rowVersion: outcome.rowVersion,
      fields: { name: "B" },
    });
  });

  test.each([
    [
      "overwritten",
      (target: WriteTarget) => sound.customers.update(target, { name: "C" }, NO_BODY, null, TEST_ORIGIN),
    ],
    ["deleted", (target: WriteTarget) => sound.customers.remove(target, null, TEST_ORIGIN)],
  ])("it was %s meanwhile: the outcome is unknown, and neither 412 nor 404 is said", async (_, other) => {
    await prepare();
    const target = await make();
    const lost = losingAnswers(
      () => store.update(target, { name: "B" }, NAME, null, TEST_ORIGIN),
      async () => {
        const { kind } = await other({ ...target, expected: { anyExcept: [target.expected] } });
        expect(["applied", "removed"]).toContain(kind);
      },
    );
    await expect(lost).rejects.toThrow("the write may have been applied");
  });

  test("under a key it is known, whatever others wrote", async () => {
    const target = await make();
    const key = { tokenId: "c", key: "k", digest: "01", nowMs: Date.now() };
    const outcome = await losingAnswers(
      () => store.update(target, { name: "B" }, NAME, key, TEST_ORIGIN),
      async () => {
        await sound.customers.update(
          { ...target, expected: { anyExcept: [target.expected] } },
          { name: "C" },
          NO_BODY,
          null,
          TEST_ORIGIN,
        );
      },
    );
    expect(outcome).toMatchObject({ kind: "applied", fields: { name: "B" } });
  });

  test.each<[string, (target: WriteTarget) => Promise<unknown>]>([
    ["a creation without a key", () => store.create("t", ADA, Date.now(), null, TEST_ORIGIN)],
    [
      "a write under any version",
      ({ tenant, id }) =>
        store.update({ tenant, id, expected: { anyExcept: [] } }, { name: "B" }, NO_BODY, null, TEST_ORIGIN),
    ],
    [
      "a removal under any version",
      ({ tenant, id }) => store.remove({ tenant, id, expected: { anyExcept: [] } }, null, TEST_ORIGIN),
    ],
  ])("%s is not sent again: its outcome is unknown", async (_, write) => {
    await prepare();
    const target = await make();
    await expect(
      losingAnswers(
        () => write(target),
        async () => {},
      ),
    ).rejects.toThrow("may have been applied");
  });

  test("a read is asked again", async () => {
    const target = await make();
    const read = await losingAnswers(
      async () => store.read("t", target.id, NAME),
      async () => {},
    );
    expect(read?.fields).toEqual({ name: "Ada" });
  });
});

test("a client whose creation has an unknown outcome is told with 503 that it may have been applied", async () => {
  const place = new Workplace();
  const service = await place.start({
    env: { DATABASE_URL: proxy.through(url) },
    cwd: place.path,
    services: 1,
  });
  const create = () =>
    service.send(place.adminToken, "POST", "/customers", { body: { name: "Ada", email: "a@b" } });
  expect((await create()).status).toBe(201);
  proxy.onRequest = (bytes) => {
    if (bytes.includes("a@b")) proxy.fault = "lost-answer";
  };
  const creating = create();
  while (proxy.lostAnswers === 0) await new Promise(setImmediate);
  proxy.onRequest = () => {};
  proxy.fault = "none";
  const { status, json, headers } = await creating;
  expect([status, json.code, headers.has("retry-after")]).toEqual([503, "store-unavailable", true]);
  expect(json.detail).toContain("may have been applied");
  expect(await cluster.query(url, "SELECT count(*) FROM customers.customers WHERE email = 'a@b'")).toBe("2");
  await place.clear();
});

test("after an unknown outcome `token create` and `token revoke` do not say that nothing was changed", async () => {
  const place = new Workplace();
  const token = ["token", "create", "--client", "c", "--role", "viewer", "--tenant", "t"];
  await sound.tokens.create({ client: "c", role: "viewer", tenant: "t" }, Date.now(), null);
  const [first] = await sound.tokens.list();
  for (const [args, statement] of [
    [token, "INSERT INTO tokens"],
    [["token", "revoke", first?.prefix ?? ""], "UPDATE tokens SET revoked_at"],
  ] as const) {
    proxy.onRequest = (bytes) => {
      if (bytes.includes(statement)) proxy.fault = "lost-answer";
    };
    const { code, stderr } = await place.command(args, { DATABASE_URL: proxy.through(url) });
    proxy.fault = "none";
    expect([code, stderr]).toEqual([1, expect.stringContaining("may have been applied")]);
    expect(stderr).toContain("Look at `token list`");
    expect(stderr).not.toContain("Nothing was changed");
  }
  await place.clear();
});

describe("nothing comes back", () => {
  const swallow = (): void => {
    proxy.fault = "black-hole";
  };
  /** What is sent first arrives, and is answered to nobody. */
  const swallowAnswers = (): void => {
    proxy.onRequest = swallow;
  };
  const swallowHandshakes = (): void => {
    proxy.cut();
    swallow();
  };
  test.each<[string, () => void]>([
    ["on connections that were idle", swallow],
    ["in the middle of a statement", swallowAnswers],
    ["to new connections", swallowHandshakes],
  ])(
    "%s: reads, writes and ping are refused when the time is up, and go on afterwards",
    async (_, before) => {
      const target = await make();
      before();
      const waiting = [
        store.read("t", target.id, NAME),
        store.update(target, { name: "B" }, NO_BODY, null, TEST_ORIGIN),
        store.create("t", ADA, Date.now(), null, TEST_ORIGIN),
        faulty.ping(),
      ];
      for (const settled of await Promise.allSettled(waiting)) {
        if (settled.status === "fulfilled") throw new Error("it was answered");
        expect(settled.reason).toBeInstanceOf(StoreUnavailable);
      }
      const kinds = new Set(events.map((event) => (event.kind === "retry" ? event.reason : event.kind)));
      expect(kinds.has("deadline") || kinds.has("never-sent")).toBe(true);
      expect(kinds.has("unknown") || kinds.has("never-sent")).toBe(true);
      proxy.onRequest = () => {};
      proxy.fault = "none";
      const { rowVersion = target.expected } = (await store.read("t", target.id, NAME)) ?? {};
      expect(
        (await store.update({ ...target, expected: rowVersion }, { name: "C" }, NO_BODY, null, TEST_ORIGIN))
          .kind,
      ).toBe("applied");
      expect((await sound.customers.read("t", target.id, NAME))?.fields).toEqual({ name: "C" });
      await faulty.ping();
    },
  );

  test("so many may wait, and further ones are refused at once", async () => {
    const target = await make();
    const full = await PostgresStorage.open(proxy.through(url), { limits: { ...limits, pendingMax: 100 } });
    proxy.fault = "black-hole";
    const reads = Array.from({ length: 400 }, () => full.customers.read("t", target.id, NAME));
    const writes = Array.from({ length: 400 }, () =>
      full.customers.create("t", ADA, Date.now(), null, TEST_ORIGIN),
    );
    const reasons = (await Promise.allSettled([...reads, ...writes])).map((settled) =>
      settled.status === "rejected" ? String(settled.reason.message) : "answered",
    );
    expect(reasons.filter((reason) => reason.includes("too many reads")).length).toBeGreaterThan(100);
    expect(reasons.filter((reason) => reason.includes("too many writes"))).toHaveLength(300);
    proxy.fault = "none";
    await full.close();
  });
});

test("a connection that is opened again is logged with the reason why the one before ended", async () => {
  const place = new Workplace();
  const service = await place.start({
    env: { DATABASE_URL: proxy.through(url) },
    cwd: place.path,
    services: 1,
  });
  const reopened = (reason: string) =>
    service.stderr.line(
      (line) => line.includes("connection to the database opened again") && line.includes(reason),
    );
  const get = async () => (await service.send(place.adminToken, "GET", "/customers")).status;
  expect([await get(), service.stderr.text.includes("opened again")]).toEqual([200, false]);
  await cluster.query(
    url,
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND application_name = 'customers-server'`,
  );
  expect(await get()).toBe(200);
  expect(await reopened("administrator command")).toContain('"level":"warn"');
  proxy.cut();
  expect(await get()).toBe(200);
  expect(await reopened("Connection closed")).not.toBeNull();
  await place.clear();
});

test("with sessions killed every 50 ms each customer has one history, and nothing hangs", async () => {
  const targets = await Promise.all(Array.from({ length: 8 }, () => make()));
  let isOver = false;
  const killing = (async () => {
    while (!isOver) {
      await cluster.query(
        url,
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() AND random() < 0.4",
      );
      await Bun.sleep(50);
    }
  })();
  const steps = new Map<string, string>();
  const fates = { applied: 0, stale: 0, unknown: 0 };
  await Promise.all(
    Array.from({ length: 24 }, async (_, worker) => {
      for (let turn = 0; turn < 25; turn += 1) {
        const target = targets[(worker + turn) % targets.length];
        if (target === undefined) throw new Error("no row");
        try {
          const known = await store.read("t", target.id, NO_BODY);
          if (known === null) throw new Error("the customer is gone");
          const outcome = await store.update(
            { ...target, expected: known.rowVersion },
            { name: `${worker} ${turn}` },
            NO_BODY,
            null,
            TEST_ORIGIN,
          );
          if (outcome.kind === "missing" || outcome.kind === "key-reused") throw new Error(outcome.kind);
          fates[outcome.kind] += 1;
          if (outcome.kind !== "applied") continue;
          expect(steps.has(known.rowVersion)).toBe(false);
          steps.set(known.rowVersion, outcome.rowVersion);
        } catch (error) {
          if (!(error instanceof StoreUnavailable)) throw error;
          fates.unknown += 1;
        }
      }
    }),
  );
  isOver = true;
  await killing;
  console.log(`sessions killed: ${JSON.stringify(fates)}`);
  expect(fates.applied).toBeGreaterThan(0);
  expect(fates.applied + fates.stale + fates.unknown).toBe(24 * 25);
});

describe("the synchronous standby does not answer", () => {
  let primary: PostgresCluster;
  let standby: PostgresCluster;
  let storage: PostgresStorage;
  beforeEach(async () => {
    primary = await PostgresCluster.start({ settings: { synchronous_standby_names: "standby" } });
    standby = await primary.startStandby();
    storage = await PostgresStorage.open(await primary.createDatabase(), {
      // What comes before the standby stalls must not meet them, on a busy machine either.
      limits: { ...limits, statementMs: 1_000 },
    });
  });
  afterEach(async () => {
    primary.thawReplication();
    await storage.close();
    await standby.stop();
    await primary.stop();
  });

  async function create(tenant: string): Promise<WriteTarget & { expected: RowVersion }> {
    const made = await storage.customers.create(tenant, ADA, Date.now(), null, TEST_ORIGIN);
    if (made.kind !== "created") throw new Error(made.kind);
    return { tenant, id: made.id, expected: made.rowVersion };
  }

  // To cancel a write that waits for its standby makes PostgreSQL acknowledge it: it would be lost by a fail-over.
  test("no write is acknowledged, and none is cancelled", async () => {
    const target = await create("t");
    primary.freezeReplication();
    await expect(storage.customers.update(target, { name: "B" }, NO_BODY, null, TEST_ORIGIN)).rejects.toThrow(
      "may have been applied",
    );
    expect((await storage.customers.read("t", target.id, NAME))?.fields).toEqual({ name: "Ada" });
    primary.thawReplication();
    while ((await storage.customers.rowVersion("t", target.id)) === target.expected) await Bun.sleep(20);
    expect((await storage.customers.read("t", target.id, NAME))?.fields).toEqual({ name: "B" });
    expect(primary.log).not.toContain("canceling wait for synchronous replication");
  });

  // A commit that nobody waits for any more keeps its session until the standby answers.
  test("writes given up do not use up the server's connections, and reads go on", async () => {
    const targets = await Promise.all(Array.from({ length: 160 }, (_, tenant) => create(`${tenant}`)));
    primary.freezeReplication();
    const reasons: string[] = [];
    while (targets.length > 0) {
      const writes = targets
        .splice(0, 20)
        .map((target) => storage.customers.update(target, { name: "B" }, NO_BODY, null, TEST_ORIGIN));
      for (const settled of await Promise.allSettled(writes))
        reasons.push(settled.status === "rejected" ? settled.reason.message : "applied");
      await storage.customers.rowVersion("0", crypto.randomUUID());
      await storage.ping();
    }
    expect(reasons).not.toContain("applied");
    expect(reasons.at(-1)).toContain("standby");
    const sessions = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'customers-server'";
    expect(Number(await primary.query("postgres", sessions))).toBeLessThan(7 + 7);
    primary.thawReplication();
    await create("later");
  });
});
