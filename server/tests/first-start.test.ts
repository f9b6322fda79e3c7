import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { existsSync, readFileSync, rmSync, statSync } from "node:fs";
import { drawToken } from "../storage/bearer-token.ts";
import { SqliteConnections } from "../storage/sqlite/connections.ts";
import { openDatabase } from "../storage/sqlite/sqlite-database.ts";
import { newToken, SqliteTokenStore } from "../storage/sqlite/sqlite-token-store.ts";
import { ServerProcess, Workplace } from "./support/server-process.ts";

let place: Workplace;
beforeEach(() => {
  place = new Workplace();
});
afterEach(() => place.clear());

const mode = (path: string) => (statSync(path).mode & 0o777).toString(8);

async function customersSeen(service: ServerProcess, bearer = place.adminToken): Promise<number> {
  const reply = await service.send(bearer, "GET", "/customers");
  expect(reply.status).toBe(200);
  return reply.json.items.length;
}

describe("the first start on an empty directory", () => {
  test("makes database, token file and directory their owner's alone", async () => {
    const service = await place.start();
    expect(mode(`${place.path}/data`)).toBe("700");
    expect(mode(`${place.path}/data/admin.token`)).toBe("600");
    for (const suffix of ["", "-wal", "-shm"]) expect(mode(`${place.database}${suffix}`)).toBe("600");
    expect(place.adminToken).toMatch(/^cst_[A-Za-z0-9]{40}$/);
    expect(await service.end()).toBe(0);
  });

  test("leaves the token in its file alone: not in the output, not in the log, not in the database", async () => {
    const service = await place.start({ isForPeople: true });
    expect(await customersSeen(service)).toBe(3);
    await service.end();
    for (const text of [service.stdout.text, service.stderr.text, readFileSync(place.database, "latin1")]) {
      expect(text).not.toContain(place.adminToken);
      expect(text).not.toContain(place.adminToken.slice(4, 40));
    }
  });

  test("makes three sample customers, or none with --no-samples", async () => {
    expect(await customersSeen(await place.start())).toBe(3);
    place.database = `${place.path}/other/customers.db`;
    const bare = await place.start({ args: ["--no-samples"] });
    expect(await customersSeen(bare, readFileSync(`${place.path}/other/admin.token`, "utf8").trim())).toBe(0);
  });
});

describe("a later start", () => {
  test("makes nothing and prints no lines to try", async () => {
    await (await place.start()).end();
    const before = place.adminToken;
    const service = await place.start({ isForPeople: true });
    expect(await customersSeen(service)).toBe(3);
    await service.end();
    expect(service.stdout.text).toBe(`Listening on ${service.url}\n`);
    expect(place.adminToken).toBe(before);
  });

  test("makes no new token when the token file is gone, and no samples when the customers are", async () => {
    const first = await place.start();
    const bearer = place.adminToken;
    rmSync(`${place.path}/data/admin.token`);
    const { items } = (await first.send(bearer, "GET", "/customers")).json;
    for (const { etag, customer } of items) {
      await first.send(bearer, "DELETE", `/customers/${customer.id}`, { headers: { "if-match": etag } });
    }
    await first.end();
    const second = await place.start();
    expect(() => place.adminToken).toThrow();
    expect(await customersSeen(second, bearer)).toBe(0);
  });

  test("on a database that `token create` made makes neither token nor samples", async () => {
    const args = ["token", "create", "--role", "editor", "--client", "ci", "--tenant", "acme"];
    const created = await place.run(args);
    expect(created.stderr).toContain("Created the database");
    const service = await place.start();
    expect(() => place.adminToken).toThrow();
    expect(await customersSeen(service, created.stdout.trim())).toBe(0);
  });
});

test("token and samples are one write: where one of them fails there is none", async () => {
  const writer = openDatabase(place.database);
  const connections = new SqliteConnections(writer, writer);
  const token = newToken(drawToken(), { client: "admin", role: "admin", tenant: "default" }, 0, null);
  const customer = { name: "Ada", email: "ada@example.com", status: "active" } as const;
  const bad = { ...customer, status: "open" as "active" };
  const customers = [customer, bad].map((each) => ({
    tenant: "default",
    customer: each,
    nowMs: 0,
    key: null,
  }));
  const failed = await connections.write.run("makeFirstRows", { token, customers }).catch(String);
  expect(failed).toContain("CHECK constraint failed");
  expect(new SqliteTokenStore(connections).list()).toEqual([]);
  await connections.close();
});

test("a first start that is killed at any moment leaves a database that the next start completes", async () => {
  const seed = Number(process.env["SEED"] ?? Math.floor(Math.random() * 1e9));
  console.log(`first start killed, seed ${seed}`);
  let state = seed;
  const random = (): number => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
  for (let round = 0; round < 5; round += 1) {
    place.database = `${place.path}/${round}/customers.db`;
    const child = ServerProcess.launch(place.database);
    // From the moment that the file appears to about when the address is printed.
    while (!existsSync(place.database)) await Bun.sleep(1);
    await Bun.sleep(random() * 25);
    child.kill("SIGKILL");
    await child.exited;
    const service = await place.start();
    expect(await customersSeen(service)).toBe(3);
    await service.end("SIGKILL");
  }
}, 60_000);
