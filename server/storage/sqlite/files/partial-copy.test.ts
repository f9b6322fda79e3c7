import { Database } from "bun:sqlite";
import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { writeDatabase } from "../../../tests/support/database-files.ts";
import { launch, Workplace } from "../../../tests/support/server-process.ts";
import { backupDatabase } from "./backup.ts";
import { checkDatabase } from "./check.ts";

let place: Workplace;
beforeEach(() => {
  place = new Workplace();
});
afterEach(() => place.clear());

/** A database that takes a while to copy. */
async function writeLargeDatabase(file: string): Promise<void> {
  await writeDatabase(file, "Ada");
  const db = new Database(file);
  db.run(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000)
    INSERT INTO customers SELECT tenant, substr(id, 1, 24) || printf('%012x', i), name, email, email_folded, status, row_version, created_at
    FROM customers, n`);
  db.close();
}

const INTERRUPTED = ["SIGINT", "SIGTERM"] as const;
const COMMANDS = [
  { command: "backup", args: ["backup", "copy.db"], partial: /^copy\.db\.\d+\.partial$/, isMade: "copy.db" },
  { command: "restore", args: ["restore", "backup.db"], partial: /^new\.db\.restoring$/, isMade: "new.db" },
];

test.each(COMMANDS.flatMap((row) => INTERRUPTED.map((signal) => ({ ...row, signal }))))(
  "$command that $signal ends leaves nothing behind",
  async ({ args, partial, isMade, signal }) => {
    const directory = dirname(place.database);
    const [from, file] =
      args[0] === "backup" ? [place.database, "customers.db"] : [`${directory}/backup.db`, "backup.db"];
    await writeLargeDatabase(from);
    const url = args[0] === "backup" ? `sqlite:${place.database}` : `sqlite:${directory}/new.db`;
    const child = launch(args, { cwd: directory, env: { DATABASE_URL: url } });
    const isEnded = child.exited.then(() => true);
    const isBegun = () => readdirSync(directory).some((name) => partial.test(name));
    while (!isBegun() && !(await Promise.race([isEnded, Bun.sleep(1).then(() => false)])));
    child.kill(signal);
    await child.exited;
    // On a busy machine it may be done before the signal.
    const made = child.signalCode === signal ? [] : [isMade];
    expect(readdirSync(directory).sort()).toEqual([file, ...made].sort());
    expect(checkDatabase(from).faults).toEqual([]);
  },
);

test("a backup removes what a killed one to its name left, and nothing else", async () => {
  await writeDatabase(place.database, "Ada");
  const ended = launch(["--version"], {});
  await ended.exited;
  const others = [`b.db.${process.ppid}.partial`, "other.db.1.partial", "b.db.x.partial", "b.db.partial"];
  for (const name of [`b.db.${ended.pid}.partial`, ...others]) {
    mkdirSync(`${place.path}/${name}`);
    writeFileSync(`${place.path}/${name}/copy.db`, "a part");
  }
  await backupDatabase(place.database, `${place.path}/b.db`);
  expect(readdirSync(place.path).sort()).toEqual(["b.db", "data", ...others].sort());
});
