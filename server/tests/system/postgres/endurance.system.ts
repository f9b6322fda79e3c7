import { heapStats } from "bun:jsc";
import { afterAll, beforeEach, expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import type { RowVersion } from "../../../domain/entity-tag.ts";
import { projectionOf } from "../../../domain/projection.ts";
import { PostgresStorage } from "../../../storage/postgres/postgres-storage.ts";
import { FaultyProxy } from "../../support/http/faulty-proxy.ts";
import { PostgresCluster } from "../../support/postgres/postgres-cluster.ts";
import { TEST_ORIGIN } from "../../support/service/test-origin.ts";

// `bun run torture:postgres` does a million operations, and 300 reconnects.
const OPERATIONS = Number(process.env["OPERATIONS"] ?? 20_000);
const RECONNECTS = Number(process.env["RECONNECTS"] ?? 20);
const WORKERS = 64;
const CUSTOMERS = 256;
const NAME = projectionOf(["name"]);

const cluster = await PostgresCluster.start();
const proxy = await FaultyProxy.start(cluster.port);
afterAll(async () => {
  proxy.stop();
  await cluster.stop();
});

let url: string;
beforeEach(async () => {
  url = await cluster.createDatabase();
});

/** What a leak would let grow. */
type Footprint = {
  readonly heapMib: number;
  readonly objects: number;
  readonly residentMib: number;
  readonly descriptors: number;
};

function footprint(): Footprint {
  Bun.gc(true);
  const { heapSize, objectCount } = heapStats();
  const mib = (bytes: number): number => Math.round(bytes / 2 ** 20);
  return {
    heapMib: mib(heapSize),
    objects: objectCount,
    residentMib: mib(process.memoryUsage.rss()),
    descriptors: readdirSync("/proc/self/fd").length,
  };
}

/** Reads, conditional writes, keyed creations and their removal, pages and look-ups of tokens. */
class Traffic {
  readonly #storage: PostgresStorage;
  readonly #known: { readonly id: string; rowVersion: RowVersion }[] = [];
  #token = "";
  #keys = 0;

  constructor(storage: PostgresStorage) {
    this.#storage = storage;
  }

  async prepare(): Promise<void> {
    const holder = { client: "c", role: "editor", tenant: "t" };
    this.#token = (await this.#storage.tokens.create(holder, Date.now(), null)).token;
    while (this.#known.length < CUSTOMERS) this.#known.push(await this.#create());
  }

  async run(operations: number): Promise<void> {
    let left = operations;
    await Promise.all(
      Array.from({ length: WORKERS }, async (_, worker) => {
        for (let turn = 0; left > 0; turn += 1) {
          left -= 1;
          // Each worker has customers of its own, so that every write is applied.
          await this.#operate(left % 20, this.#known[worker + WORKERS * (turn % (CUSTOMERS / WORKERS))]);
        }
      }),
    );
  }

  async #operate(kind: number, customer = this.#known[0]): Promise<void> {
    const { customers, tokens } = this.#storage;
    if (customer === undefined) throw new Error("no customer");
    if (kind === 0) {
      const { id, rowVersion } = await this.#create();
      const removed = await customers.remove({ tenant: "t", id, expected: rowVersion }, null, TEST_ORIGIN);
      expect(removed.kind).toBe("removed");
    } else if (kind === 1) {
      const page = { tenant: "t", after: null, limit: 5, status: null, email: null };
      expect((await customers.page(page, NAME)).items).toHaveLength(5);
    } else if (kind < 6) {
      const target = { tenant: "t", id: customer.id, expected: customer.rowVersion };
      const outcome = await customers.update(target, { name: `${kind}` }, NAME, null, TEST_ORIGIN);
      if (outcome.kind !== "applied") throw new Error(outcome.kind);
      customer.rowVersion = outcome.rowVersion;
    } else if (kind < 12) expect(await tokens.find(this.#token, Date.now())).not.toBeNull();
    else expect((await customers.read("t", customer.id, NAME))?.rowVersion).toBe(customer.rowVersion);
  }

  async #create(): Promise<{ readonly id: string; rowVersion: RowVersion }> {
    this.#keys += 1;
    const key = { tokenId: "t", key: `${this.#keys}`, digest: "00", nowMs: Date.now() };
    const fields = { name: "A", email: "a@example.com", status: "active" } as const;
    const made = await this.#storage.customers.create("t", fields, Date.now(), key, TEST_ORIGIN);
    if (made.kind !== "created") throw new Error(made.kind);
    return { id: made.id, rowVersion: made.rowVersion };
  }
}

test(`memory stays flat over ${OPERATIONS} operations`, async () => {
  const storage = await PostgresStorage.open(url);
  const traffic = new Traffic(storage);
  await traffic.prepare();
  // Until the engine has compiled what it will.
  await traffic.run(Math.max(OPERATIONS / 5, 10_000));
  const before = footprint();
  await traffic.run(OPERATIONS);
  const after = footprint();
  console.log(`${OPERATIONS} operations: ${JSON.stringify({ before, after })}`);
  expect(after.objects).toBeLessThan(before.objects + 5_000);
  expect(after.heapMib).toBeLessThan(before.heapMib + 8);
  expect(after.residentMib).toBeLessThan(before.residentMib + 96);
  await storage.close();
});

test(`${RECONNECTS} reconnects leave neither connections nor descriptors nor memory behind`, async () => {
  let opened = 0;
  const storage = await PostgresStorage.open(proxy.through(url), {
    onServerEvent: ({ kind }) => {
      if (kind === "connected") opened += 1;
    },
  });
  const traffic = new Traffic(storage);
  await traffic.prepare();
  const rare = () => storage.tokens.list();
  const cut = async (times: number): Promise<void> => {
    for (let count = 0; count < times; count += 1) {
      const wanted = opened + 7;
      proxy.cut();
      // The two connections for what is rare are used by nothing else here.
      while (opened < wanted) await Promise.all([traffic.run(WORKERS), rare(), rare()]);
    }
  };
  await cut(10);
  const before = footprint();
  await cut(RECONNECTS);
  const after = footprint();
  console.log(`${RECONNECTS} reconnects: ${JSON.stringify({ before, after })}`);
  expect(after.descriptors).toBeLessThanOrEqual(before.descriptors + 7);
  expect(after.objects).toBeLessThan(before.objects + 5_000);
  expect(after.heapMib).toBeLessThan(before.heapMib + 8);
  const database = new URL(url).pathname.slice(1);
  const connected = `SELECT count(*) FROM pg_stat_activity WHERE datname = '${database}'`;
  expect(await cluster.query("postgres", connected)).toBe("7");
  await storage.close();
});
