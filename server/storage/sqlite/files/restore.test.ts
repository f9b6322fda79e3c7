import { Database } from "bun:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import {
  chmodSync,
  chownSync,
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
import { CommandRefused } from "../../../domain/command-refused.ts";
import { damage, namesIn, writeDatabase } from "../../../tests/support/database/database-files.ts";
import { Random } from "../../../tests/support/random.ts";
import { launch, type ServerProcess, Workplace } from "../../../tests/support/service/server-process.ts";
import { SqliteStorage } from "../sqlite-storage.ts";
import { backupDatabase } from "./backup.ts";
import { checkDatabase } from "./check.ts";
import { restoreDatabase } from "./restore.ts";
import { openDatabase } from "./sqlite-database.ts";

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

/** @returns why the backup was not restored, or null when it was */
async function refusalOf(backup: string): Promise<string | null> {
  try {
    await restoreDatabase(backup, place.database, true);
    return null;
  } catch (error) {
    if (error instanceof CommandRefused) return error.message;
    throw error;
  }
}

describe("restore", () => {
  async function backedUp(...names: string[]): Promise<void> {
    await writeDatabase(place.database, ...names);
    await backupDatabase(place.database, backupFile());
  }
  const files = () => readdirSync(`${place.path}/data`).sort();
  const bytesOfAll = () =>
    files().map((name) => [name, readFileSync(`${place.path}/data/${name}`, "latin1")]);
  const mode = (path: string) => (statSync(path).mode & 0o777).toString(8);

  test("leaves the database to the service's user, even if another user restores", async () => {
    await backedUp("Ada");
    // An operator restores as root, and the service has a user of its own. Others can hand a file to nobody else.
    const uid = process.getuid?.() === 0 ? 12_345 : statSync(place.database).uid;
    chownSync(place.database, uid, statSync(place.database).gid);
    await restoreDatabase(backupFile(), place.database, true);
    expect(statSync(place.database).uid).toBe(uid);

    rmSync(place.database);
    chownSync(`${place.path}/data`, uid, statSync(`${place.path}/data`).gid);
    await restoreDatabase(backupFile(), place.database, false);
    expect(statSync(place.database).uid).toBe(uid);
  });

  test("refuses to overwrite without --force, and changes nothing", async () => {
    await backedUp("Ada");
    const before = bytesOfAll();
    const outcome = await place.command(["restore", backupFile()]);
    expect(outcome).toMatchObject({ code: 1, stdout: "" });
    expect(outcome.stderr).toContain("--force");
    expect(bytesOfAll()).toEqual(before);
  });

  test("waits as long as LOCK_WAIT says for a backup that another process holds, and then refuses", async () => {
    await backedUp("Ada");
    const holder = openDatabase(backupFile());
    holder.run("PRAGMA locking_mode = EXCLUSIVE");
    holder.run("BEGIN EXCLUSIVE");
    const outcome = await place.run(["restore", backupFile(), "--force"], { LOCK_WAIT: "0" });
    holder.close();
    expect(outcome).toMatchObject({ code: 1, stdout: "" });
    expect(outcome.stderr).toContain("another process holds its lock");
  });

  test("says of a file that is none of ours, or is missing, to name another, and nothing of DATABASE_URL", async () => {
    const file = `${place.path}/log.txt`;
    writeFileSync(file, "a log\n".repeat(1000));
    expect((await place.command(["restore", file, "--force"])).stderr).toBe(
      `${file} can't be opened: it is not a SQLite database. Name another file.\n`,
    );
    expect((await place.command(["restore", `${file}.gz`, "--force"])).stderr).toBe(
      `${file}.gz does not exist. Name a database that does.\n`,
    );
  });

  test.each(["backup", "restore"])("%s takes no setting of a database server", async (command) => {
    const outcome = await place.command([command, backupFile(), "--database-ca", "ca.pem"]);
    expect(outcome).toMatchObject({ code: 2, stdout: "" });
  });

  test("refuses while any process has the database open, --force or not, and the service goes on", async () => {
    const service = await place.start();
    expect((await place.command(["backup", backupFile()])).code).toBe(0);
    expect((await place.command(["restore", backupFile()])).code).toBe(1);
    const forced = await place.command(["restore", backupFile(), "--force"]);
    expect(forced).toMatchObject({ code: 1, stdout: "" });
    expect(forced.stderr).toContain("is open in a running process. Stop the service first");
    expect(await add(service, "After")).toBe(201);
    await service.end();

    // Not the service alone: any other reader would go on with a file that is no longer there.
    const reader = new Database(place.database);
    reader.query("SELECT count(*) FROM customers").get();
    expect((await place.run(["restore", backupFile(), "--force"])).code).toBe(1);
    reader.close();
    expect(await place.run(["restore", backupFile(), "--force"])).toMatchObject({ code: 0, stderr: "" });
    expect(await namesIn(place.database)).not.toContain("After");
  });

  test("replaces database, -wal and -shm together: nothing of the old one comes back", async () => {
    const service = await place.start();
    expect(await add(service, "Kept")).toBe(201);
    await backupDatabase(place.database, backupFile());
    expect(await add(service, "Later")).toBe(201);
    await service.end("SIGKILL");
    expect(existsSync(`${place.database}-wal`)).toBe(true);
    expect(await refusalOf(backupFile())).toBeNull();
    expect(files()).toEqual(["admin.token", "customers.db"]);
    const names = await namesIn(place.database);
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
      expect(await refusalOf(backupFile())).toBeNull();
      expect(files()).toEqual(["customers.db"]);
      expect(await namesIn(place.database)).toEqual(["Kept"]);
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
    expect(await refusalOf(backupFile())).toBeNull();
    expect(await namesIn(place.database)).toEqual(["Kept"]);
  });

  test("refuses a damaged database's place while a process has it open", async () => {
    await backedUp("Kept");
    const service = await place.start();
    writeFileSync(place.database, "rubbish".repeat(10_000));
    expect(await refusalOf(backupFile())).toContain("is open in a running process");
    await service.end("SIGKILL");
    expect(await refusalOf(backupFile())).toBeNull();
    expect(await namesIn(place.database)).toEqual(["Kept"]);
  });

  test("says which erased customers the backup holds again, as far as the replaced database tells", async () => {
    await writeDatabase(place.database, "Ada", "Eve", "Zoe");
    const idsOf = (storage: SqliteStorage) => storage.persons.withEmail("default", "x@example.com");
    const erase = async (...picked: number[]) => {
      const storage = SqliteStorage.open(place.database);
      const ids = picked.map((index) => idsOf(storage)[index] ?? "");
      for (const id of ids) await storage.persons.erase("default", id);
      await storage.close();
      return ids;
    };
    const [before] = await erase(0);
    await backupDatabase(place.database, backupFile());
    const since = await erase(0, 1);
    expect(since).not.toContain(before);
    const restored = await place.command(["restore", backupFile(), "--force"]);
    expect(restored.stdout).toContain(
      "As far as the audit trail of the replaced database goes back, 2 of its customers were erased since then.",
    );
    const [, printed = ""] = /`person (erase --yes [^`]*)`/.exec(restored.stdout) ?? [];
    expect(printed.split(" ").slice(2).sort()).toEqual([...since].sort());
    expect((await place.command(["person", ...printed.split(" ")])).code).toBe(0);
    const again = SqliteStorage.open(place.database);
    expect(idsOf(again)).toEqual([]);
    await again.close();
    damage(place.database);
    const unknown = await place.command(["restore", backupFile(), "--force"]);
    expect(unknown.stdout).toContain("A customer erased since then is there again, too");
    const none = await place.command(["restore", backupFile(), "--force"]);
    expect(none.stdout).toContain(
      "As far as the audit trail of the replaced database goes back, it holds no customer who was erased.",
    );
  });

  test("goes where no database is, but makes no directory, whose name may be a typing error", async () => {
    await backedUp("Kept");
    place.database = `${place.path}/fresh/customers.db`;
    const refused = await place.command(["restore", backupFile()]);
    expect(refused.stderr).toContain("does not exist. Create it, or correct DATABASE_URL.");
    expect(existsSync(`${place.path}/fresh`)).toBe(false);
    mkdirSync(`${place.path}/fresh`);
    expect((await place.run(["restore", backupFile()])).code).toBe(0);
    expect(mode(place.database)).toBe("600");
    expect(await namesIn(place.database)).toEqual(["Kept"]);
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
    expect(await refusalOf(path("damaged.db"))).toContain("is damaged");
    expect(await refusalOf(path("text.db"))).toContain("not a SQLite database");
    expect(await refusalOf(path("missing.db"))).toContain("does not exist");
    expect(await refusalOf(path("foreign.db"))).toContain("not a database of this service");
    expect(await refusalOf(path("newer.db"))).toContain("newer version");
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
    expect(await refusalOf(`${place.path}/copy/customers.db`)).toBeNull();
    expect(await namesIn(place.database)).toContain("In the WAL");
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
    expect(await namesIn(place.database)).toEqual(["Kept"]);
  });

  test("that is killed at any moment leaves the old database whole or the new one, never a part of each", async () => {
    await writeDatabase(`${place.path}/new.db`, "New 1", "New 2");
    await backupDatabase(`${place.path}/new.db`, backupFile());
    // An old one whose last write is in its -wal alone, as a service that was killed leaves it.
    const service = await place.start({ args: ["--no-samples"] });
    for (const name of ["Old 1", "Old 2"]) expect(await add(service, name)).toBe(201);
    await service.end("SIGKILL");
    const parts = ["", "-wal"].map((suffix) => [suffix, readFileSync(`${place.database}${suffix}`)] as const);
    const random = new Random();
    const seen = { old: 0, new: 0 };
    for (let round = 0; round < 6; round += 1) {
      for (const name of files())
        if (name !== "admin.token") rmSync(`${place.path}/data/${name}`, { recursive: true });
      for (const [suffix, bytes] of parts) writeFileSync(`${place.database}${suffix}`, bytes);
      const restore = launch(["restore", backupFile(), "--force"], {
        env: { DATABASE_URL: `sqlite:${place.database}` },
      });
      // Near each of its steps in turn: the copy is begun, the old
      // -wal is folded in or removed, the new one is in place.
      const steps = [
        () => files().includes("customers.db.restoring"),
        () => !files().includes("customers.db-wal"),
        () => statSync(place.database).ino !== ino,
      ];
      const { ino } = statSync(place.database);
      const isEnded = restore.exited.then(() => true);
      while (
        steps[round % 3]?.() === false &&
        !(await Promise.race([isEnded, Bun.sleep(1).then(() => false)]))
      );
      await Bun.sleep(random.next() * 3);
      restore.kill("SIGKILL");
      await restore.exited;
      expect(checkDatabase(place.database).faults).toEqual([]);
      const names = await namesIn(place.database);
      const which = names[0] === "Old 1" ? "old" : "new";
      expect(names).toEqual(which === "old" ? ["Old 1", "Old 2"] : ["New 1", "New 2"]);
      seen[which] += 1;
    }
    console.log(
      `restore killed, seed ${random.seed}: ${seen.old} times the old one is left, ${seen.new} the new`,
    );
  });
});
