import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { readFileSync, rmSync, statSync } from "node:fs";
import { runCommand, ServerProcess, temporaryDirectory } from "./testing/server-process.ts";

let directory: ReturnType<typeof temporaryDirectory>;
let database: string;
const running: ServerProcess[] = [];
beforeEach(() => {
  directory = temporaryDirectory();
  database = `${directory.path}/data/customers.db`;
});
afterEach(async () => {
  for (const service of running.splice(0)) await service.end("SIGKILL");
  directory.remove();
});

type Options = Parameters<typeof ServerProcess.start>[1];

async function start(options: Options = {}): Promise<ServerProcess> {
  const service = await ServerProcess.start(database, options);
  running.push(service);
  return service;
}

const tokenFile = () => `${directory.path}/data/admin.token`;
const token = () => readFileSync(tokenFile(), "utf8").trim();
const mode = (path: string) => (statSync(path).mode & 0o777).toString(8);

async function customersSeen(service: ServerProcess, bearer = token()): Promise<number | string> {
  const reply = await fetch(`${service.url}/customers`, { headers: { authorization: `Bearer ${bearer}` } });
  const body = (await reply.json()) as { items: unknown[]; code?: string };
  return reply.status === 200 ? body.items.length : (body.code ?? reply.status);
}

describe("the first start on an empty directory", () => {
  test("makes database, token file and directory their owner's alone", async () => {
    const service = await start();
    expect(mode(`${directory.path}/data`)).toBe("700");
    expect(mode(tokenFile())).toBe("600");
    for (const suffix of ["", "-wal", "-shm"]) expect(mode(`${database}${suffix}`)).toBe("600");
    expect(token()).toMatch(/^cst_[A-Za-z0-9]{40}$/);
    expect(await service.end()).toBe(0);
  });

  test("leaves the token in its file alone: not in the output, not in the log, not in the database", async () => {
    const service = await start({ isForPeople: true });
    expect(await customersSeen(service)).toBe(3);
    await service.end();
    for (const text of [service.stdout.text, service.stderr.text, readFileSync(database, "latin1")]) {
      expect(text).not.toContain(token());
      expect(text).not.toContain(token().slice(4, 40));
    }
  });

  test("makes three sample customers, or none with --no-samples", async () => {
    expect(await customersSeen(await start())).toBe(3);
    database = `${directory.path}/other/customers.db`;
    const bare = await start({ args: ["--no-samples"] });
    expect(
      await customersSeen(bare, readFileSync(`${directory.path}/other/admin.token`, "utf8").trim()),
    ).toBe(0);
  });
});

describe("a later start", () => {
  test("makes nothing and prints no lines to try", async () => {
    await (await start()).end();
    const before = token();
    const service = await start({ isForPeople: true });
    expect(await customersSeen(service)).toBe(3);
    await service.end();
    expect(service.stdout.text).toBe(`Listening on ${service.url}\n`);
    expect(token()).toBe(before);
  });

  test("makes no new token when the token file is gone, and no samples when the customers are", async () => {
    const first = await start();
    const bearer = token();
    rmSync(tokenFile());
    const headers = { authorization: `Bearer ${bearer}` };
    const list = (await (await fetch(`${first.url}/customers`, { headers })).json()) as {
      items: { etag: string; customer: { id: string } }[];
    };
    for (const { etag, customer } of list.items) {
      const path = `${first.url}/customers/${customer.id}`;
      await fetch(path, { method: "DELETE", headers: { ...headers, "if-match": etag } });
    }
    await first.end();
    const second = await start();
    expect(() => token()).toThrow();
    expect(await customersSeen(second, bearer)).toBe(0);
  });

  test("on a database that `token create` made makes neither token nor samples", async () => {
    const env = { DATABASE_URL: `sqlite:${database}` };
    const args = ["token", "create", "--role", "editor", "--client", "ci", "--tenant", "acme"];
    const created = await runCommand(args, { env });
    expect(created.stderr).toContain("did not exist and was made");
    const service = await start();
    expect(() => token()).toThrow();
    expect(await customersSeen(service, created.stdout.trim())).toBe(0);
  });
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
    database = `${directory.path}/${round}/customers.db`;
    const child = ServerProcess.launch(database);
    // From before the file is made to after the address is printed, on a fast machine and on a slow one.
    const made = Bun.sleep(100 + random() * 400);
    await Promise.race([made, child.exited]);
    child.kill("SIGKILL");
    await child.exited;
    const service = await start();
    const bearer = readFileSync(`${directory.path}/${round}/admin.token`, "utf8").trim();
    expect(await customersSeen(service, bearer)).toBe(3);
    await service.end();
  }
}, 60_000);
