import { afterEach, beforeEach, expect, test } from "bun:test";
import { SqliteStorage } from "../storage/sqlite/sqlite-storage.ts";
import { holdLock } from "./support/database/held-lock.ts";
import { CountingClients } from "./support/service/counting-clients.ts";
import { Workplace } from "./support/service/server-process.ts";
import { TestService } from "./support/service/test-service.ts";

let place: Workplace;
beforeEach(() => {
  place = new Workplace();
  place.makeDirectory();
});
afterEach(() => place.clear());

test("another process holds the write lock for longer than writes wait: reads go on, writes are 503, then all is as before", async () => {
  const service = await place.start({ env: { LOCK_WAIT: "0.5" } });
  const clients = new CountingClients(service.port, place.adminToken);
  await clients.start();
  await clients.until(() => clients.acknowledged > 50);
  const lock = await holdLock(place.database);
  const { reads } = clients;
  await clients.until(() => clients.refused > 0 && clients.reads > reads + 300);
  await lock.release();
  const { acknowledged } = clients;
  await clients.until(() => clients.acknowledged > acknowledged + 50);
  for (const count of await clients.stop()) {
    // What was refused for a lock was never begun.
    expect(count.stored).toBe(count.acknowledged);
  }
  expect(await place.run(["check"])).toMatchObject({ code: 0, stderr: "" });
});

test("the writer's thread dies three times amid writes: none that was acknowledged is lost, and another takes its place", async () => {
  const started: Worker[] = [];
  const RealWorker = globalThis.Worker;
  globalThis.Worker = class extends RealWorker {
    constructor(...args: ConstructorParameters<typeof RealWorker>) {
      super(...args);
      started.push(this);
    }
  };
  const deaths: string[] = [];
  const storage = SqliteStorage.open(place.database, {
    onFault: (reason) => deaths.push(reason),
    chooseWhere: () => "thread",
  });
  const service = await TestService.start({ storage });
  try {
    const clients = new CountingClients(service.port, await service.token());
    await clients.start();
    for (let death = 1; death <= 3; death += 1) {
      const { acknowledged } = clients;
      await clients.until(() => clients.acknowledged > acknowledged + 40);
      await storage.ready;
      started.at(-1)?.terminate();
      await clients.until(() => deaths.length === death);
    }
    const { acknowledged } = clients;
    await clients.until(() => clients.acknowledged > acknowledged + 40);
    for (const { acknowledged, refused, stored } of await clients.stop()) {
      // One that was under way when the thread died is there or is not; nobody was told that it is.
      expect(stored).toBeGreaterThanOrEqual(acknowledged);
      expect(stored).toBeLessThanOrEqual(acknowledged + refused);
    }
    expect(deaths).toHaveLength(3);
  } finally {
    globalThis.Worker = RealWorker;
    await service.stop();
  }
});
