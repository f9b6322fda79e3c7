import { Database } from "bun:sqlite";
import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { writeDatabase } from "../../../tests/support/database/database-files.ts";
import { launch, Workplace } from "../../../tests/support/service/server-process.ts";
import { backupDatabase } from "./backup.ts";
import { checkDatabase } from "./check.ts";

let place: Workplace;
beforeEach(() => {
  place = new Workplace();
});
afterEach(() => place.clear());

/** A database with so many customers takes a while to copy. */
async function writeLargeDatabase(file: string, customers: number): Promise<void> {
  await writeDatabase(file, "Ada");
  const db = new Database(file);
  db.run(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${customers})
    INSERT INTO customers SELECT tenant, substr(id, 1, 24) || printf('%012x', i), name, email, email_folded, status, row_version, created_at, 0
    FROM customers, n`);
  db.close();
}

const INTERRUPTED = ["SIGINT", "SIGTERM"] as const;
const COMMANDS = [
  {
    args: ["backup", "copy.db"],
    from: "customers.db",
    url: "customers.db",
    partial: /^copy\.db\.\d+\.partial$/,
  },
  { args: ["restore", "backup.db"], from: "backup.db", url: "new.db", partial: /^new\.db\.restoring$/ },
];
/** On a busy machine a small copy may be done before the signal. */
const CUSTOMERS = [20_000, 100_000, 400_000];

test.each(COMMANDS.flatMap((row) => INTERRUPTED.map((signal) => ({ ...row, signal }))))(
  "$args.0 that $signal ends leaves nothing behind",
  async ({ args, from, url, partial, signal }) => {
    /** @returns what ended it */
    const interrupt = async (directory: string, customers: number): Promise<string | number | null> => {
      mkdirSync(directory);
      await writeLargeDatabase(`${directory}/${from}`, customers);
      const child = launch(args, { cwd: directory, env: { DATABASE_URL: `sqlite:${directory}/${url}` } });
      const isEnded = child.exited.then(() => true);
      const isBegun = () => readdirSync(directory).some((name) => partial.test(name));
      while (!isBegun() && !(await Promise.race([isEnded, Bun.sleep(1).then(() => false)])));
      child.kill(signal);
      await child.exited;
      return child.signalCode;
    };
    let directory = "";
    let ending: string | number | null = null;
    for (const customers of CUSTOMERS) {
      directory = `${place.path}/${customers}`;
      ending = await interrupt(directory, customers);
      if (ending !== null) break;
    }
    expect(ending).toBe(signal);
    // SQLite's own files of the source are no part of the copy: the next program that opens it removes them.
    const ofSource = [`${from}-wal`, `${from}-shm`];
    expect(readdirSync(directory).filter((name) => !ofSource.includes(name))).toEqual([from]);
    expect(checkDatabase(`${directory}/${from}`).faults).toEqual([]);
  },
  30_000,
);

test("a backup removes what a killed one to its name left, and nothing else", async () => {
  await writeDatabase(place.database, "Ada");
  const ended = launch(["--version"], {});
  await ended.exited;
  // Of a backup to "b.db.<number>" that is under way.
  const underWay = `b.db.${ended.pid}.${process.ppid}.partial`;
  const others = [
    `b.db.${process.ppid}.partial`,
    underWay,
    "other.db.1.partial",
    "b.db.x.partial",
    "b.db.partial",
  ];
  for (const name of [`b.db.${ended.pid}.partial`, `b.db.0.${ended.pid}.partial`, ...others]) {
    mkdirSync(`${place.path}/${name}`);
    writeFileSync(`${place.path}/${name}/copy.db`, "a part");
  }
  await backupDatabase(place.database, `${place.path}/b.db`);
  expect(readdirSync(place.path).sort()).toEqual(["b.db", "data", ...others].sort());
});
