import { Database } from "bun:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { type ServerProcess, Workplace } from "../testing/server-process.ts";
import { backupDatabase, checkDatabase, restoreDatabase } from "./backup.ts";
import { SqliteConnections } from "./sqlite-connections.ts";
import { SqliteCustomerStore } from "./sqlite-customer-store.ts";
import { DatabaseRefused, openDatabase } from "./sqlite-database.ts";

let place: Workplace;
beforeEach(() => {
  place = new Workplace();
});
afterEach(() => place.clear());

const backupFile = () => `${place.path}/backup.db`;

async function add(service: ServerProcess, name: string): Promise<number> {
  const body = { name, email: "x@example.com" };
  return (await service.send(place.adminToken, "POST", "/customers", { body })).status;
}

async function namesIn(service: ServerProcess): Promise<string[]> {
  const { items } = (await service.send(place.adminToken, "GET", "/customers?limit=500")).json;
  return items.map((item: { customer: { name: string } }) => item.customer.name);
}

/** A database with customers of these names, made here: a process each time would cost a second. */
async function databaseWith(...names: string[]): Promise<void> {
  const store = new SqliteCustomerStore(SqliteConnections.open(place.database));
  for (const name of names) {
    await store.create("default", { name, email: "x@example.com", status: "active" }, 0, null);
  }
  await store.close();
}

async function namesInFile(): Promise<string[]> {
  const store = new SqliteCustomerStore(SqliteConnections.open(place.database));
  const filter = { tenant: "default", after: null, limit: 500, status: null, email: null };
  const { items } = store.page(filter, ["name"]);
  await store.close();
  return items.map((item) => item.fields.name ?? "");
}

/** @returns why the backup was not restored, or null when it was */
function refusalOf(backup: string, isForced = true): string | null {
  try {
    restoreDatabase(backup, place.database, isForced);
    return null;
  } catch (error) {
    if (error instanceof DatabaseRefused) return error.message;
    throw error;
  }
}

/** Writes rubbish over most of a file, or of a copy of another, its header left as it is. */
function damage(file: string, from = file): void {
  const bytes = readFileSync(from);
  bytes.fill(0x5a, 4096 + 8);
  writeFileSync(file, bytes);
}

describe("backup", () => {
  test("of a service that is writing is one moment of it: whole, sound, its owner's alone", async () => {
    const service = await place.start({ args: ["--no-samples"] });
    const acknowledged: string[] = [];
    let isOver = false;
    const writing = Array.from({ length: 4 }, async (_, writer) => {
      for (let n = 0; !isOver; n += 1) {
        const name = `w${writer} n${n}`;
        expect(await add(service, name)).toBe(201);
        acknowledged.push(name);
      }
    });
    while (acknowledged.length < 20) await Bun.sleep(1);
    const before = [...acknowledged];
    const outcome = await place.run(["backup", backupFile()]);
    isOver = true;
    await Promise.all(writing);
    expect(outcome.code).toBe(0);
    expect(outcome.stdout).toContain(backupFile());
    expect(statSync(backupFile()).mode & 0o777).toBe(0o600);
    expect(readdirSync(place.path).sort()).toEqual(["backup.db", "data"]);

    const { adminToken } = place;
    const checked = await Workplace.prototype.run.call(place, ["check"], {
      DATABASE_URL: `sqlite:${backupFile()}`,
    });
    expect(checked).toMatchObject({ code: 0, stderr: "" });
    await service.end();
    expect((await place.run(["restore", backupFile(), "--force"])).code).toBe(0);
    const restored = await place.start();
    const names = new Set(
      (await restored.send(adminToken, "GET", "/customers?limit=500&fields=name")).json.items.map(
        (item: { customer: { name: string } }) => item.customer.name,
      ),
    );
    // All that was acknowledged before it began; of each writer's later ones the first so many, without a gap.
    for (const name of before) expect(names).toContain(name);
    for (let writer = 0; writer < 4; writer += 1) {
      const mine = [...names].filter((name) => String(name).startsWith(`w${writer} `)).length;
      for (let n = 0; n < mine; n += 1) expect(names).toContain(`w${writer} n${n}`);
    }
  });

  test("never overwrites, and leaves nothing behind where it fails", async () => {
    await databaseWith("Ada");
    writeFileSync(backupFile(), "mine");
    const outcome = await place.run(["backup", backupFile()]);
    expect(outcome).toMatchObject({ code: 1, stdout: "" });
    expect(outcome.stderr).toContain("exists already; a backup never overwrites");
    expect(readFileSync(backupFile(), "utf8")).toBe("mine");

    const nowhere = await place.run(["backup", `${place.path}/no/such/directory/backup.db`]);
    expect(nowhere.code).toBe(1);
    expect(nowhere.stderr).toContain("can't be written");
    expect(nowhere.stderr).not.toContain("    at ");
    const missing = await place.run(["backup", "b.db"], { DATABASE_URL: "sqlite:missing.db" });
    expect(missing).toMatchObject({ code: 1, stderr: "missing.db does not exist.\n" });
    expect(readdirSync(place.path).sort()).toEqual(["backup.db", "data"]);
    expect(readdirSync(`${place.path}/data`).sort()).toEqual(["customers.db"]);
  });

  test("two at once to one name: one is made, the other is refused", async () => {
    await databaseWith("Ada");
    const outcomes = await Promise.all([0, 1, 2].map(() => place.run(["backup", backupFile()])));
    expect(outcomes.map((outcome) => outcome.code).sort()).toEqual([0, 1, 1]);
    expect((await place.run(["check"], { DATABASE_URL: `sqlite:${backupFile()}` })).code).toBe(0);
    expect(readdirSync(place.path).sort()).toEqual(["backup.db", "data"]);
  });
});

describe("restore", () => {
  async function backedUp(...names: string[]): Promise<void> {
    await databaseWith(...names);
    backupDatabase(place.database, backupFile());
  }
  const files = () => readdirSync(`${place.path}/data`).sort();
  const bytesOfAll = () =>
    files().map((name) => [name, readFileSync(`${place.path}/data/${name}`, "latin1")]);
  const mode = (path: string) => (statSync(path).mode & 0o777).toString(8);

  test("refuses to overwrite without --force, and changes nothing", async () => {
    await backedUp("Ada");
    const before = bytesOfAll();
    const outcome = await place.run(["restore", backupFile()]);
    expect(outcome).toMatchObject({ code: 1, stdout: "" });
    expect(outcome.stderr).toContain("--force");
    expect(bytesOfAll()).toEqual(before);
  });

  test("refuses while any process has the database open, --force or not, and the service goes on", async () => {
    const service = await place.start();
    expect((await place.run(["backup", backupFile()])).code).toBe(0);
    expect((await place.run(["restore", backupFile()])).code).toBe(1);
    const forced = await place.run(["restore", backupFile(), "--force"]);
    expect(forced).toMatchObject({ code: 1, stdout: "" });
    expect(forced.stderr).toContain("is open in a running process. Stop the service first");
    expect(await add(service, "After")).toBe(201);
    expect(await namesIn(service)).toContain("After");
    await service.end();

    // Not the service alone: whoever else reads it would go on with a file that is no longer there.
    const reader = new Database(place.database);
    reader.query("SELECT count(*) FROM customers").get();
    expect((await place.run(["restore", backupFile(), "--force"])).code).toBe(1);
    reader.close();
    expect(await place.run(["restore", backupFile(), "--force"])).toMatchObject({ code: 0, stderr: "" });
    expect(await namesInFile()).not.toContain("After");
  });

  test("replaces database, -wal and -shm together: nothing of the old one comes back", async () => {
    const service = await place.start();
    expect(await add(service, "Kept")).toBe(201);
    backupDatabase(place.database, backupFile());
    expect(await add(service, "Later")).toBe(201);
    await service.end("SIGKILL");
    expect(existsSync(`${place.database}-wal`)).toBe(true);
    expect(refusalOf(backupFile())).toBeNull();
    expect(files()).toEqual(["admin.token", "customers.db"]);
    const names = await namesInFile();
    expect(names).toContain("Kept");
    expect(names).not.toContain("Later");
    expect(checkDatabase(place.database).faults).toEqual([]);
  });

  test("does not play an old journal into the new database, where the old one is damaged or gone", async () => {
    await backedUp("Kept");
    for (const isGone of [false, true]) {
      for (const suffix of ["-wal", "-shm", "-journal"]) {
        writeFileSync(`${place.database}${suffix}`, Buffer.alloc(8192, 0x5a));
      }
      if (isGone) rmSync(place.database);
      else writeFileSync(place.database, "rubbish");
      expect(refusalOf(backupFile())).toBeNull();
      expect(files()).toEqual(["customers.db"]);
      expect(await namesInFile()).toEqual(["Kept"]);
    }
  });

  test.each([
    ["overwritten", () => damage(place.database)],
    ["cut short", () => truncateSync(place.database, 5000)],
    ["emptied", () => truncateSync(place.database, 0)],
    ["of another kind", () => writeFileSync(place.database, "not a database at all\n".repeat(500))],
  ])("replaces a database that was %s", async (_, ruin) => {
    await backedUp("Kept");
    ruin();
    expect(refusalOf(backupFile())).toBeNull();
    expect(await namesInFile()).toEqual(["Kept"]);
  });

  test("refuses a damaged database's place while a process has it open", async () => {
    await backedUp("Kept");
    const service = await place.start();
    writeFileSync(place.database, "rubbish".repeat(10_000));
    expect(refusalOf(backupFile())).toContain("is open in a running process");
    await service.end("SIGKILL");
    expect(refusalOf(backupFile())).toBeNull();
    expect(await namesInFile()).toEqual(["Kept"]);
  });

  test("goes where no database is, also in a directory that does not exist yet", async () => {
    await backedUp("Kept");
    place.database = `${place.path}/fresh/machine/customers.db`;
    expect((await place.run(["restore", backupFile()])).code).toBe(0);
    expect(mode(`${place.path}/fresh`)).toBe("700");
    expect(mode(place.database)).toBe("600");
    expect(await namesInFile()).toEqual(["Kept"]);
  });

  test("checks the backup first: what is damaged, foreign, newer or missing is refused, and nothing changes", async () => {
    await backedUp("Kept");
    const path = (name: string) => `${place.path}/${name}`;
    damage(path("damaged.db"), backupFile());
    writeFileSync(path("text.db"), "x".repeat(9000));
    const foreign = new Database(path("foreign.db"));
    foreign.run("CREATE TABLE customers (id TEXT)");
    foreign.close();
    const newer = openDatabase(path("newer.db"));
    newer.run("PRAGMA user_version = 99");
    newer.close();
    const before = bytesOfAll();
    expect(refusalOf(path("damaged.db"))).toContain("is damaged");
    expect(refusalOf(path("text.db"))).toContain("not a SQLite database");
    expect(refusalOf(path("missing.db"))).toContain("does not exist");
    expect(refusalOf(path("foreign.db"))).toContain("not a database of this service");
    expect(refusalOf(path("newer.db"))).toContain("newer version");
    expect(bytesOfAll()).toEqual(before);
  });

  test("brings back what a copied backup still has in a -wal of its own", async () => {
    const service = await place.start();
    expect(await add(service, "In the WAL")).toBe(201);
    await service.end("SIGKILL");
    mkdirSync(`${place.path}/copy`);
    for (const suffix of ["", "-wal"]) {
      copyFileSync(`${place.database}${suffix}`, `${place.path}/copy/customers.db${suffix}`);
    }
    expect(refusalOf(`${place.path}/copy/customers.db`)).toBeNull();
    expect(await namesInFile()).toContain("In the WAL");
  });

  test("takes a backup that may only be read", async () => {
    await backedUp("Kept");
    const vault = `${place.path}/vault`;
    mkdirSync(vault);
    copyFileSync(backupFile(), `${vault}/backup.db`);
    chmodSync(`${vault}/backup.db`, 0o400);
    chmodSync(vault, 0o500);
    const outcome = await place.run(["restore", `${vault}/backup.db`, "--force"]);
    chmodSync(vault, 0o700);
    expect(outcome).toMatchObject({ code: 0, stderr: "" });
    expect(readdirSync(vault)).toEqual(["backup.db"]);
    expect(mode(place.database)).toBe("600");
    expect(await namesInFile()).toEqual(["Kept"]);
  });
});

describe("check", () => {
  test("says that a sound database is sound, with its contents counted, and leaves no file behind", async () => {
    await databaseWith("Ada");
    const outcome = await place.run(["check"]);
    expect(outcome).toEqual({
      code: 0,
      stderr: "",
      stdout: `${place.database}: sound (schema 1, 1 customers, 0 tokens)\n`,
    });
    expect(readdirSync(`${place.path}/data`).sort()).toEqual(["customers.db"]);
  });

  test("can be asked while the service runs", async () => {
    const service = await place.start();
    expect(await place.run(["check"])).toMatchObject({ code: 0, stderr: "" });
    expect(await add(service, "Ada")).toBe(201);
  });

  test.each([
    ["rubbish over its pages", () => damage(place.database), "damaged"],
    ["pages cut away", () => truncateSync(place.database, 8192), "damaged"],
    ["a broken rule", breakRule, "CHECK constraint failed in customers"],
    ["no database at all", () => writeFileSync(place.database, "x".repeat(9000)), "not a SQLite database"],
  ])("exits with 1 and says what it found: %s", async (_, ruin, says) => {
    await databaseWith("Ada");
    ruin();
    const outcome = await place.run(["check"]);
    expect(outcome).toMatchObject({ code: 1, stdout: "" });
    expect(outcome.stderr).toContain(says);
    expect(outcome.stderr).not.toContain("    at ");
  });
});

/** A row that no statement of the service could write. */
function breakRule(): void {
  const db = new Database(place.database);
  db.run("PRAGMA ignore_check_constraints = ON");
  db.run("UPDATE customers SET status = 'unheard-of' WHERE name = 'Ada'");
  db.close();
}
