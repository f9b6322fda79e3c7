import { Database } from "bun:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import {
  chmodSync,
  copyFileSync,
  existsSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { Random } from "./support/random.ts";
import { ServerProcess, Workplace } from "./support/service/server-process.ts";

let place: Workplace;
beforeEach(() => {
  place = new Workplace();
});
afterEach(() => place.clear());

/** The default, which the support of the tests sets otherwise. */
const DEFAULT_SAMPLES = { env: { SAMPLES: "" } };
const mode = (path: string) => (statSync(path).mode & 0o777).toString(8);
const read = (file: string) => readFileSync(file, "utf8").trim();

async function customersSeen(service: ServerProcess, bearer = place.adminToken): Promise<number> {
  const reply = await service.send(bearer, "GET", "/customers");
  expect(reply.status).toBe(200);
  return reply.json.items.length;
}

/** Starts the service, which refuses. @returns what it says */
async function refusal(): Promise<string> {
  const { code, stdout, stderr } = await place.run(["serve", "--port", "0"]);
  expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
  expect(stderr).not.toMatch(/^ +at /m);
  return stderr;
}

describe("the first start", () => {
  test("in the default place makes directory, database and token file their owner's alone, and three samples", async () => {
    // Its own directory, which the support of the tests does not make.
    const service = await place.start({ cwd: place.path, env: { DATABASE_URL: "", SAMPLES: "" } });
    expect(mode(`${place.path}/data`)).toBe("700");
    expect(mode(`${place.path}/data/admin.token`)).toBe("600");
    for (const suffix of ["", "-wal", "-shm"]) expect(mode(`${place.database}${suffix}`)).toBe("600");
    expect(place.adminToken).toMatch(/^cst_[A-Za-z0-9]{40}$/);
    expect(await customersSeen(service)).toBe(3);
    expect(await service.end()).toBe(0);
  });

  test("elsewhere makes no samples, unless it is asked to", async () => {
    expect(await customersSeen(await place.start(DEFAULT_SAMPLES))).toBe(0);
    place.database = `${place.path}/data/other.db`;
    const service = await place.start();
    expect(await customersSeen(service, read(`${place.path}/data/other.admin.token`))).toBe(3);
  });

  test("elsewhere makes no directory: a typing error would start an empty service", async () => {
    place.makeDirectory();
    place.database = `${place.path}/dta/customers.db`;
    expect(await refusal()).toContain(`The directory ${place.path}/dta of the database`);
    expect(existsSync(`${place.path}/dta`)).toBe(false);
    const command = ["token", "create", "--role", "viewer", "--client", "c", "--tenant", "t"];
    expect((await place.command(command)).stderr).toContain(
      "does not exist. Create it, or correct DATABASE_URL.",
    );
    expect(readdirSync(place.path)).toEqual(["data"]);
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

  test("of a second database in the same directory leaves the first one's token as it is", async () => {
    await place.prepare();
    const first = place.adminToken;
    place.database = `${place.path}/data/second.db`;
    const service = await place.start();
    expect(await customersSeen(service, read(`${place.path}/data/second.admin.token`))).toBe(3);
    expect(place.adminToken).toBe(first);
  });

  test("of several services at the same moment makes one token and three samples, and all of them serve", async () => {
    for (let round = 0; round < 2; round += 1) {
      place.database = `${place.path}/data/${round}.db`;
      const services = await Promise.all(Array.from({ length: 3 }, () => place.start()));
      const bearer = read(`${place.path}/data/${round}.admin.token`);
      for (const service of services) expect(await customersSeen(service, bearer)).toBe(3);
      const { stdout } = await place.command(["token", "list"]);
      expect(stdout.match(/^cst_/gm)).toHaveLength(1);
      await place.endAll();
    }
    expect(readdirSync(`${place.path}/data`).filter((name) => name.endsWith(".partial"))).toEqual([]);
  });

  test("that is killed at any moment leaves a database that the next start completes", async () => {
    const random = new Random();
    console.log(`first start killed, seed ${random.seed}`);
    for (let round = 0; round < 3; round += 1) {
      place.database = `${place.path}/${round}/customers.db`;
      const child = ServerProcess.launch(place.database);
      // From the moment that the file appears to about when the address is printed.
      while (!existsSync(place.database)) await Bun.sleep(1);
      await Bun.sleep(random.next() * 25);
      child.kill("SIGKILL");
      await child.exited;
      const service = await place.start();
      expect(await customersSeen(service)).toBe(3);
      await service.end("SIGKILL");
    }
  });

  test("that was cut off before the token file had its name is completed by the next start", async () => {
    await place.prepare();
    const { adminToken } = place;
    rmSync(`${place.path}/data/admin.token`);
    writeFileSync(`${place.path}/data/admin.token.partial`, `${adminToken}\n`);
    expect(await customersSeen(await place.start())).toBe(3);
    expect(existsSync(`${place.path}/data/admin.token.partial`)).toBe(false);
  });
});

describe("a start on what is left of a database is refused, and changes nothing", () => {
  test.each([
    [
      "emptied, with its log",
      () => writeFileSync(`${place.database}-wal`, "writes"),
      "customers.db-wal is left",
    ],
    ["emptied", () => {}, "admin.token is left of an earlier database"],
    ["removed", () => rmSync(place.database), "admin.token is left of an earlier database"],
    [
      "without a table, as a copy of the file alone is before the first checkpoint",
      () => copyFileSync(withoutTables(), place.database),
      "admin.token is left of an earlier database",
    ],
  ])("%s", async (_, disturb, says) => {
    await place.prepare();
    const { adminToken } = place;
    truncateSync(place.database, 0);
    disturb();
    const before = readdirSync(`${place.path}/data`);
    const said = await refusal();
    expect(said).toContain(says);
    expect(said).toContain("`restore FILE --force`");
    expect(readdirSync(`${place.path}/data`)).toEqual(before);
    expect(place.adminToken).toBe(adminToken);
  });
});

function withoutTables(): string {
  const file = `${place.path}/without-tables.db`;
  const db = new Database(file);
  db.run("PRAGMA journal_mode = WAL");
  db.close();
  expect(statSync(file).size).toBeGreaterThan(0);
  return file;
}

test("files that others may read are reported at the start", async () => {
  await place.prepare();
  chmodSync(place.database, 0o644);
  chmodSync(`${place.path}/data/admin.token`, 0o640);
  const service = await place.start();
  for (const [file, mode] of [
    ["customers.db", "0644"],
    ["admin.token", "0640"],
  ]) {
    await service.stderr.line((line) => line.includes(`${file} may be read by others (mode ${mode})`));
  }
});

describe("a later start", () => {
  test("makes nothing and prints no lines to try", async () => {
    await place.prepare();
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
    place.makeDirectory();
    const args = ["token", "create", "--role", "editor", "--client", "ci", "--tenant", "acme"];
    const created = await place.command(args);
    expect(created.stderr).toContain("Created the database");
    const service = await place.start();
    expect(() => place.adminToken).toThrow();
    expect(await customersSeen(service, created.stdout.trim())).toBe(0);
  });
});
