import { Database } from "bun:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import {
  copyFileSync,
  readFileSync,
  renameSync,
  statSync,
  truncateSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname } from "node:path";
import { connect, openDatabase } from "../storage/sqlite/files/sqlite-database.ts";
import { SqliteStorage } from "../storage/sqlite/sqlite-storage.ts";
import { holdLock } from "./support/database/held-lock.ts";
import { movedIn, requestSeries, scrape, writeSeries } from "./support/service/metric-series.ts";
import { type ServerProcess, Workplace } from "./support/service/server-process.ts";
import { TEST_ORIGIN } from "./support/service/test-origin.ts";
import { type Reply, TestService } from "./support/service/test-service.ts";

let place: Workplace;
const services: TestService[] = [];
beforeEach(() => {
  place = new Workplace();
  place.makeDirectory();
});
afterEach(async () => {
  for (const service of services.splice(0)) await service.stop();
  await place.clear();
});

async function serviceOn(storage: SqliteStorage): Promise<TestService> {
  const service = await TestService.start({ storage });
  services.push(service);
  return service;
}

function expectUnavailable(reply: Reply): void {
  expect(reply.status).toBe(503);
  expect(reply.headers.get("retry-after")).toMatch(/^[1-9]\d*$/);
  expect(reply.headers.get("content-type")).toBe("application/problem+json");
  expect(reply.headers.get("etag")).toBeNull();
  expect(reply.json.code).toBe("store-unavailable");
  // Not a word of what it was.
  expect(reply.text).not.toMatch(/sqlite|disk|lock|malformed|database disk/i);
}

const change = { name: "Changed", email: "changed@example.com" };
const big = (n: number) => ({ name: `${n} ${"x".repeat(190)}`, email: `${"x".repeat(60)}@example.com` });

describe("a full disk", () => {
  test("refuses writes with 503 and Retry-After, acknowledges none, serves reads, and is over when there is room", async () => {
    const writer = openDatabase(place.database);
    const service = await serviceOn(new SqliteStorage(connect(place.database), writer));
    const customer = await service.customer();
    const limit = (pages: number) => writer.query(`PRAGMA max_page_count = ${pages}`).get();
    limit(1); // SQLite takes it as: no page more than there are

    // Until the free space inside the file is used up, creations go on; every one acknowledged counts.
    let acknowledged = 1;
    let refused: Reply | null = null;
    for (let n = 0; n < 200 && refused === null; n += 1) {
      const reply = await service.send("POST", "/customers", { body: big(n) });
      if (reply.status === 201) acknowledged += 1;
      else refused = reply;
    }
    if (refused === null) throw new Error("the disk was never full");
    expectUnavailable(refused);
    const burst = await Promise.all(
      Array.from({ length: 20 }, (_, n) => service.send("POST", "/customers", { body: big(n) })),
    );
    for (const reply of burst) expectUnavailable(reply);

    const read = await service.send("GET", customer.path);
    expect([read.status, read.etag]).toEqual([200, customer.etag]);
    expect((await service.send("GET", "/readyz")).status).toBe(200);
    const listed = await service.send("GET", "/customers?limit=500&fields=id");
    expect(listed.json.items).toHaveLength(acknowledged);

    limit(1_000_000);
    expect((await service.send("POST", "/customers", { body: big(0) })).status).toBe(201);
    const headers = { "if-match": customer.etag };
    expect((await service.send("PUT", customer.path, { body: change, headers })).status).toBe(204);
  });
});

describe("a lock that another process holds", () => {
  test("is waited for, while reads are served; then every write is made", async () => {
    const service = await place.start();
    const token = place.adminToken;
    const created = await service.send(token, "POST", "/customers", { body: change });
    const path = `/customers/${created.json.id}`;
    const lock = await holdLock(place.database);
    let isAnswered = false;
    const write = service
      .send(token, "PATCH", path, { body: change, headers: { "if-match": created.etag } })
      .finally(() => {
        isAnswered = true;
      });
    for (let n = 0; n < 20; n += 1) {
      expect((await service.send(token, "GET", path)).etag).toBe(created.etag);
    }
    expect(isAnswered).toBe(false);
    await lock.release();
    expect((await write).status).toBe(204);
  });

  test("keeps no scrape waiting: it shows the writes that wait, and the token's own use is noted later", async () => {
    const service = await place.start({ services: 1 });
    const created = await place.run(["token", "create", "--role", "monitor", "--client", "prometheus"]);
    const monitor = created.stdout.trim();
    const lock = await holdLock(place.database);
    const write = service.send(place.adminToken, "POST", "/customers", { body: change });
    const waiting = async (): Promise<string | undefined> => {
      const { status, text } = await service.send(monitor, "GET", "/metrics");
      expect(status).toBe(200);
      return /^customers_writes_waiting (\d+)$/m.exec(text)?.[1];
    };
    while ((await waiting()) === "0");
    expect(Number(await waiting())).toBeGreaterThan(0);
    await lock.release();
    expect((await write).status).toBe(201);
  });

  test("for too long is 503 for each write that waits, and nothing of them is made; later writes succeed", async () => {
    const writer = openDatabase(place.database);
    const limits = { lockWaitMs: 50, pendingMax: 1000 };
    const service = await serviceOn(new SqliteStorage(connect(place.database), writer, { limits }));
    const customer = await service.customer();
    const headers = { "if-match": customer.etag };
    const lock = await holdLock(place.database);
    const replies = await Promise.all([
      service.send("PUT", customer.path, { body: change, headers }),
      service.send("PATCH", customer.path, { body: change, headers }),
      service.send("DELETE", customer.path, { headers }),
      service.send("POST", "/customers", { body: change }),
    ]);
    for (const reply of replies) expectUnavailable(reply);
    expect((await service.send("GET", customer.path)).etag).toBe(customer.etag);
    await lock.release();
    expect((await service.send("GET", "/customers")).json.items).toHaveLength(1);
    expect((await service.send("PUT", customer.path, { body: change, headers })).status).toBe(204);
  });

  test("makes a write an attempt in the metrics, and neither a 412 nor a 428", async () => {
    const writer = openDatabase(place.database);
    const limits = { lockWaitMs: 0, pendingMax: 10 };
    const service = await serviceOn(new SqliteStorage(connect(place.database), writer, { limits }));
    const { path, etag } = await service.customer({}, { client: "shop" });
    // While it can still be made: the token that reads the metrics.
    await scrape(service);
    const lock = await holdLock(place.database);
    const { reply, moved } = await movedIn(service, () =>
      service.send("PUT", path, {
        caller: { client: "shop" },
        headers: { "if-match": etag, "user-agent": "shop" },
        body: change,
      }),
    );
    expectUnavailable(reply);
    expect(moved).toEqual({
      [writeSeries("http_write_attempts_total", "PUT")]: 1,
      [requestSeries("PUT", 503)]: 1,
    });
    await lock.release();
  });

  test("is waited for by a start and by every command, then refused in a sentence that does not call it damage", async () => {
    const holder = openDatabase(place.database);
    holder.run("PRAGMA locking_mode = EXCLUSIVE");
    holder.run("BEGIN EXCLUSIVE");
    const commands = [
      ["serve"],
      ["check"],
      ["backup", "b.db"],
      ["token", "list"],
      ["token", "create", "--role", "viewer", "--client", "c", "--tenant", "t"],
    ];
    const env = { PORT: "0", LOCK_WAIT: "0.1" };
    const outcomes = await Promise.all(commands.map((args) => place.run(args, env)));
    holder.close();
    for (const { code, stdout, stderr } of outcomes) {
      expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
      expect(stderr).toContain("another process holds its lock");
      expect(stderr).not.toMatch(/damaged|^ +at /m);
    }
  });

  test("for writing alone stops no start that has nothing to write, and refuses a command that has", async () => {
    await place.prepare();
    const lock = await holdLock(place.database);
    const service = await place.start();
    expect((await service.send(place.adminToken, "GET", "/customers")).status).toBe(200);
    const created = await place.run(
      ["token", "create", "--role", "viewer", "--client", "c", "--tenant", "t"],
      { LOCK_WAIT: "0.1" },
    );
    await lock.release();
    expect(created).toMatchObject({ code: 1, stdout: "" });
    expect(created.stderr).toContain("another process holds the lock. Nothing was changed.");
  });
});

test("two processes on one database: of writes with one entity-tag, sent to both, one is applied and the rest are 412", async () => {
  const services = [await place.start(), await place.start()] as const;
  const token = place.adminToken;
  const created = await services[0].send(token, "POST", "/customers", { body: change });
  const path = `/customers/${created.json.id}`;
  let etag = created.etag;
  for (let round = 0; round < 5; round += 1) {
    const headers = { "if-match": etag };
    const replies = await Promise.all(
      Array.from({ length: 20 }, (_, n) =>
        (services[n % 2] ?? services[0]).send(token, "PUT", path, {
          body: { name: `r${round} n${n}`, email: "x@example.com" },
          headers,
        }),
      ),
    );
    const applied = replies.filter((reply) => reply.status === 204);
    expect(replies.map((reply) => reply.status).sort()).toEqual([204, ...Array(19).fill(412)]);
    etag = applied[0]?.etag ?? "";
    expect(new Set(replies.map((reply) => reply.etag))).toEqual(new Set([etag]));
    for (const service of services) expect((await service.send(token, "GET", path)).etag).toBe(etag);
  }
});

describe("a database file that goes bad while the service runs", () => {
  async function serviceOnManyCustomers() {
    const storage = SqliteStorage.open(place.database);
    const creations = Array.from({ length: 3000 }, (_, n) =>
      storage.customers.create("default", { ...big(n), status: "active" }, n, null, TEST_ORIGIN),
    );
    const ids = (await Promise.all(creations)).map((outcome) => ("id" in outcome ? outcome.id : ""));
    await storage.close();
    const service = await place.start({ args: ["--no-samples"] });
    return { service, token: place.adminToken, ids };
  }

  test.each([
    [
      "overwritten with rubbish",
      () => writeFileSync(place.database, new Uint8Array(statSync(place.database).size).fill(0x5a)),
    ],
    ["truncated", () => truncateSync(place.database, 4096)],
  ])(
    "%s: 503 for what can't be read, never a wrong answer; and it is over when the file is whole again",
    async (_, ruin) => {
      const { service, token, ids } = await serviceOnManyCustomers();
      const whole = readFileSync(place.database);
      ruin();
      const middle = ids.filter((_, index) => index % 100 === 50);
      let unavailable = 0;
      for (const id of middle) {
        const reply = await service.send(token, "GET", `/customers/${id}`);
        // A page that is still in memory may be served: it is what was written.
        if (reply.status === 200) expect(reply.json.id).toBe(id);
        else {
          expectUnavailable(reply);
          unavailable += 1;
        }
      }
      expect(unavailable).toBeGreaterThan(0);
      expectUnavailable(await service.send(token, "GET", "/customers?limit=500"));
      expect((await service.send(null, "GET", "/healthz")).status).toBe(200);
      writeFileSync(place.database, whole, { flag: "r+" });
      for (const id of middle) {
        expect((await service.send(token, "GET", `/customers/${id}`)).json.id).toBe(id);
      }
      expect(await service.end()).toBe(0);
    },
  );
});

describe("a database file that is moved, removed or replaced while the service runs", () => {
  const away = () => `${place.path}/away.db`;
  test.each([
    ["moved", () => renameSync(place.database, away())],
    [
      "replaced",
      () => {
        renameSync(place.database, away());
        copyFileSync(away(), place.database);
      },
    ],
  ])(
    "%s: no write is acknowledged that the next start would not have, and no read answered; put back, it is over",
    async (_, disturb) => {
      const service = await place.start();
      const token = place.adminToken;
      const created = await service.send(token, "POST", "/customers", { body: change });
      const path = `/customers/${created.json.id}`;
      const headers = { "if-match": created.etag };
      disturb();
      expectUnavailable(await service.send(token, "PUT", path, { body: change, headers }));
      expectUnavailable(await service.send(token, "POST", "/customers", { body: change }));
      expectUnavailable(await service.send(null, "GET", "/readyz"));
      await readsAreRefused(service, token, path);
      await service.stderr.line((line) => line.includes("is not the file that was opened"));

      renameSync(away(), place.database);
      expect((await service.send(null, "GET", "/readyz")).status).toBe(200);
      expect((await service.send(token, "PUT", path, { body: change, headers })).status).toBe(204);
      expect(await service.end()).toBe(0);
      const later = await place.start();
      expect((await later.send(token, "GET", path)).etag).not.toBe(created.etag);
    },
  );
});

/** Reads look at the files now and then, so one may be answered just after they changed. */
async function readsAreRefused(service: ServerProcess, token: string, path: string): Promise<void> {
  let reply: Reply;
  do reply = await service.send(token, "GET", path);
  while (reply.status === 200);
  expectUnavailable(reply);
}

test("a service whose index is deleted does not see that another process revoked a token, and answers nobody", async () => {
  const service = await place.start();
  const create = ["token", "create", "--role", "editor", "--client", "ci", "--tenant", "default"];
  const leaver = (await place.run(create)).stdout.trim();
  expect((await service.send(leaver, "GET", "/customers")).status).toBe(200);
  unlinkSync(`${place.database}-shm`);
  expect(await place.run(["token", "revoke", leaver])).toMatchObject({ code: 0 });
  await readsAreRefused(service, leaver, "/customers");
  await readsAreRefused(service, place.adminToken, "/customers");
});

test("a service whose index is deleted takes no write, and what a command wrote meanwhile is still there at the next start", async () => {
  const service = await place.start();
  const token = place.adminToken;
  const created = await service.send(token, "POST", "/customers", { body: change });
  unlinkSync(`${place.database}-shm`);
  const command = ["token", "create", "--role", "editor", "--client", "ci", "--tenant", "default"];
  const { code, stdout } = await place.run(command);
  expect(code).toBe(0);
  expectUnavailable(await service.send(token, "POST", "/customers", { body: change }));
  expectUnavailable(await service.send(null, "GET", "/readyz"));
  await service.stderr.line((line) => line.includes("customers.db-shm was deleted or replaced"));
  expect(await service.end()).toBe(0);
  const later = await place.start();
  const reply = await later.send(stdout.trim(), "GET", `/customers/${created.json.id}`);
  expect(reply).toMatchObject({ status: 200, etag: created.etag });
});

test("a directory that cannot be looked into is the store's fault (503), health and metrics go on, and it is over when it is back", async () => {
  const service = await place.start({ services: 1 });
  const token = place.adminToken;
  const monitor = await place.run(["token", "create", "--role", "monitor", "--client", "prometheus"]);
  const directory = dirname(place.database);
  renameSync(directory, `${place.path}/elsewhere`);
  // ENOTDIR for everyone; a mode of 000 would be none for root.
  writeFileSync(directory, "");
  expectUnavailable(await service.send(token, "POST", "/customers", { body: change }));
  expectUnavailable(await service.send(null, "GET", "/readyz"));
  expect((await service.send(null, "GET", "/healthz")).status).toBe(200);
  expect((await service.send(monitor.stdout.trim(), "GET", "/metrics")).status).toBe(200);
  unlinkSync(directory);
  renameSync(`${place.path}/elsewhere`, directory);
  expect((await service.send(token, "POST", "/customers", { body: change })).status).toBe(201);
});

describe("a database that can't be used refuses the start in a sentence, with exit code 1", () => {
  test.each([
    ["no database", () => writeFileSync(`${place.path}/x.db`, "x".repeat(9000)), "not a SQLite database"],
    [
      "of a newer version",
      () => {
        const db = openDatabase(`${place.path}/x.db`);
        db.run("PRAGMA user_version = 99");
        db.close();
      },
      "was written by a newer version (schema 99",
    ],
    [
      "of another program",
      () => {
        const db = new Database(`${place.path}/x.db`);
        db.run("CREATE TABLE songs (title TEXT)");
        db.close();
      },
      "is the database of another program",
    ],
  ])("%s", async (_, prepare, says) => {
    prepare();
    const outcome = await place.run([], { PORT: "0", DATABASE_URL: `sqlite:${place.path}/x.db` });
    expect(outcome).toMatchObject({ code: 1, stdout: "" });
    expect(outcome.stderr).toContain(says);
    expect(outcome.stderr).not.toContain("    at ");
  });
});
