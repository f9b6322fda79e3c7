import { afterEach, beforeEach, expect, test } from "bun:test";
import { linkSync, mkdirSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { namesIn, writeDatabase } from "../../../tests/support/database/database-files.ts";
import { Workplace } from "../../../tests/support/service/server-process.ts";
import { isMountPoint } from "./second-name.ts";

let place: Workplace;
beforeEach(() => {
  place = new Workplace();
});
afterEach(() => place.clear());

const backupFile = () => `${place.path}/backup.db`;
const files = () => readdirSync(`${place.path}/data`).sort();

test.each([
  ["a service", []],
  ["token list", ["token", "list"]],
  ["backup", ["backup", "new.db"]],
  ["restore --force", ["restore", "backup.db", "--force"]],
  ["check", ["check"]],
  ["a copy from it", ["copy", "--from", "sqlite:data/customers.db", "--to", "sqlite:new.db"]],
  ["a copy to it", ["copy", "--from", "sqlite:backup.db", "--to", "sqlite:data/customers.db"]],
])("a database with a second hard link is refused by %s and left as it is", async (_, args) => {
  await writeDatabase(place.database, "Ada");
  expect((await place.command(["backup", backupFile()])).code).toBe(0);
  linkSync(place.database, `${place.path}/data/other.db`);
  const outcome = args.length === 0 ? await place.run(["serve"], { PORT: "0" }) : await place.command(args);
  expect(outcome).toMatchObject({ code: 1, stdout: "" });
  expect(outcome.stderr).toMatch(/^\S*data\/customers\.db has 2 names \(hard links\)/);
  expect(outcome.stderr).toContain("Remove the others");
  expect(files()).toEqual(["customers.db", "other.db"]);

  rmSync(`${place.path}/data/other.db`);
  expect((await place.command(["check"])).code).toBe(0);
});

test("a backup may have several names, as in a tree of snapshots, and is restored", async () => {
  await writeDatabase(place.database, "Ada");
  expect((await place.command(["backup", backupFile()])).code).toBe(0);
  linkSync(backupFile(), `${place.path}/snapshot.db`);
  expect((await place.command(["restore", backupFile(), "--force"])).code).toBe(0);
  expect(await namesIn(place.database)).toEqual(["Ada"]);
});

test("a copy that ended between its file's two names is finished by the next", async () => {
  await writeDatabase(place.database, "Ada");
  const copy = ["copy", "--from", "sqlite:data/customers.db", "--to", "sqlite:data/new.db"];
  expect((await place.command(copy)).code).toBe(0);
  linkSync(`${place.path}/data/new.db`, `${place.path}/data/new.db.copying`);
  expect(await place.command(copy)).toMatchObject({ code: 0, stderr: "" });
  expect(files()).toEqual(["customers.db", "new.db"]);
});

test("a mount point is found by its real path in the system's list of mounts", () => {
  mkdirSync(`${place.path}/a b\\c`);
  const path = `${place.path}/a b\\c/customers.db`;
  writeFileSync(path, "");
  symlinkSync("a b\\c", `${place.path}/link`);
  const line = (mountPoint: string) =>
    `611 597 8:1 /srv/x.db ${mountPoint} rw,relatime shared:3 - ext4 /dev/sda1 rw\n`;
  const mounts = line(`${place.path}/a\\040b\\134c/customers.db`);
  expect(isMountPoint(path, line("/") + mounts)).toBe(true);
  expect(isMountPoint(`${place.path}/link/customers.db`, mounts)).toBe(true);
  expect(isMountPoint(path, line("/") + line(`${place.path}/a\\040b\\134c`))).toBe(false);
});
