import { Database } from "bun:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { CommandRefused } from "../../../domain/command-refused.ts";
import { SQLITE_SCHEMA_4 } from "../../../tests/support/database/former-schemas.ts";
import { temporaryDirectory } from "../../../tests/support/service/server-process.ts";
import { backupDatabase } from "./backup.ts";
import { checkDatabase } from "./check.ts";
import { restoreDatabase } from "./restore.ts";
import { SCHEMA_VERSION } from "./schema.ts";
import {
  connect,
  openDatabase,
  openExistingDatabase,
  schemaVersion,
  withReasons,
} from "./sqlite-database.ts";

let directory: ReturnType<typeof temporaryDirectory>;
let file: string;
beforeEach(() => {
  directory = temporaryDirectory();
  file = `${directory.path}/customers.db`;
});
afterEach(() => directory.remove());

/** The message of the refusal; a plain error would not do. */
function refusalOf(open: () => Database): string {
  try {
    open().close();
  } catch (error) {
    if (error instanceof CommandRefused) return error.message;
    throw error;
  }
  throw new Error("it was opened");
}

function value(db: Database, pragma: string): unknown {
  return Object.values(db.query<Record<string, unknown>, []>(`PRAGMA ${pragma}`).get() ?? {})[0];
}

describe("a database that is opened", () => {
  test("keeps every commit through a power cut, checks references and waits for locks, on each connection", () => {
    openDatabase(file).close();
    for (const db of [openDatabase(file), connect(file)]) {
      expect(value(db, "journal_mode")).toBe("wal");
      expect(value(db, "synchronous")).toBe(2); // FULL
      expect(value(db, "foreign_keys")).toBe(1);
      expect(value(db, "trusted_schema")).toBe(0);
      expect(Number(value(db, "busy_timeout"))).toBeGreaterThan(0);
      db.close();
    }
  });

  test("is made once by several that open it at the same moment, and refused to none", async () => {
    const url = new URL("../../../tests/support/database/open-database-worker.ts", import.meta.url).href;
    const threads = Array.from({ length: 4 }, () => new Worker(url));
    const next = (thread: Worker) =>
      new Promise<string>((said) => {
        thread.onmessage = ({ data }) => said(data);
      });
    await Promise.all(threads.map(next));
    const outcomes = new Set<string>();
    for (let round = 0; round < 60; round += 1) {
      const said = threads.map(next);
      for (const thread of threads) thread.postMessage(`${directory.path}/${round}.db`);
      for (const outcome of await Promise.all(said)) outcomes.add(outcome);
    }
    expect([...outcomes]).toEqual(["opened"]);
    for (const thread of threads) thread.terminate();
  });

  test("has STRICT tables alone", () => {
    const db = openDatabase(file);
    const tables = db
      .query<{ strict: number; name: string }, []>(
        "SELECT name, strict FROM pragma_table_list WHERE schema = 'main' AND name NOT LIKE 'sqlite_%'",
      )
      .all();
    expect(tables.length).toBeGreaterThanOrEqual(3);
    expect(tables.filter((table) => table.strict !== 1)).toEqual([]);
    db.close();
  });

  test("is made where it is new, with this version's schema", () => {
    const db = openDatabase(file);
    expect(schemaVersion(db)).toBe(SCHEMA_VERSION);
    db.close();
  });

  test("is not written again when it is up to date: the write lock of another process does not hinder a start", () => {
    openDatabase(file).close();
    const other = connect(file);
    other.run("BEGIN IMMEDIATE");
    openDatabase(file).close();
    other.run("ROLLBACK");
    other.close();
  });
});

/** As version 4 left it: with a customer, a token and a key of cursors. */
function writeFormerDatabase(path: string): void {
  const db = new Database(path, { strict: true });
  db.run("PRAGMA journal_mode = WAL");
  db.run(SQLITE_SCHEMA_4);
  db.run("PRAGMA user_version = 4");
  db.run("PRAGMA application_id = 1129665364");
  db.run("INSERT INTO customers VALUES ('t', ?, 'Ada', 'Ada@b', 'ada@b', 'active', 'AAAAAAAAAAAAAAAA', 7)", [
    "01890000-0000-7000-8000-000000000000",
  ]);
  db.run("INSERT INTO tokens VALUES (randomblob(32), 'cst_abc', 'c', 'admin', 't', 1, NULL, NULL, NULL)");
  db.close();
}

function schemaOf(db: Database): unknown {
  return db.query("SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY name").all();
}

describe("a database of the version before", () => {
  test("is carried over when it is opened, to the very schema of a new one, and keeps its rows", () => {
    writeFormerDatabase(file);
    const former = new Database(file);
    const columns = {
      customers: "tenant, id, name, email, email_folded, status, row_version, created_at",
      tokens: "digest, prefix, client, role, tenant, created_at, expires_at, last_used_at, revoked_at",
      cursor_key: "*",
    };
    const rowsOf = (db: Database) =>
      Object.entries(columns).map(([table, names]) => db.query(`SELECT ${names} FROM ${table}`).values());
    const before = rowsOf(former);
    former.close();
    const db = openDatabase(file);
    const fresh = openDatabase(`${directory.path}/fresh.db`);
    expect(schemaVersion(db)).toBe(SCHEMA_VERSION);
    expect(schemaOf(db)).toEqual(schemaOf(fresh));
    expect(rowsOf(db)).toEqual(before);
    db.close();
    fresh.close();
  });

  test("is looked at by commands as it is", async () => {
    writeFormerDatabase(file);
    expect(checkDatabase(file)).toEqual({ faults: [], customers: 1, tokens: 1, schemaVersion: 4 });
    await backupDatabase(file, `${directory.path}/backup.db`);
    expect(checkDatabase(`${directory.path}/backup.db`).schemaVersion).toBe(4);
  });

  test("is carried over from a backup that was restored", async () => {
    writeFormerDatabase(`${directory.path}/backup.db`);
    await restoreDatabase(`${directory.path}/backup.db`, file, false);
    const db = openDatabase(file);
    expect(db.query("SELECT name FROM customers").values()).toEqual([["Ada"]]);
    db.close();
  });
});

test.each([
  ["a database", "real.db"],
  ["nothing", "missing.db"],
])("a link to %s is refused: its log would be elsewhere", (_, target) => {
  openDatabase(`${directory.path}/real.db`).close();
  symlinkSync(target, file);
  expect(refusalOf(() => openDatabase(file))).toContain("is a symbolic link. Name the file");
  expect(readdirSync(directory.path).sort()).toEqual(["customers.db", "real.db"]);
});

test("a damaged file is refused with the advice to check it before another one is put in its place", () => {
  openDatabase(file).close();
  const bytes = readFileSync(file);
  writeFileSync(file, bytes.fill(0x5a, 100, 4096));
  const advice = "Run `check`; if it finds damage, `restore FILE --force`";
  expect(refusalOf(() => openDatabase(file))).toContain(advice);
  expect(checkDatabase(file).faults).toHaveLength(1);
});

test.each([
  ["EROFS", "its file system is read-only. Mount it for writing, or name another file."],
  ["EACCES", "this user may not write it. Change its owner or mode, or start the service as its owner."],
  ["ENOSPC", "the disk is full."],
])("a refusal of the system is said in a sentence: %s", (code, says) => {
  const refuse = (): never => {
    throw Object.assign(new Error(`${code}: access '${file}'`), { code });
  };
  expect(refusalOf(() => withReasons(file, refuse))).toBe(`${file} can't be opened: ${says}`);
});

describe("a file that is refused is left as it was", () => {
  const bytesOf = () => readFileSync(file);

  test("a database of another program", () => {
    const foreign = new Database(file);
    foreign.run("CREATE TABLE songs (title TEXT)");
    foreign.run("INSERT INTO songs VALUES ('Summertime')");
    foreign.close();
    const before = bytesOf();
    expect(refusalOf(() => openDatabase(file))).toContain("another program");
    expect(refusalOf(() => openExistingDatabase(file))).toContain("not a database of this service");
    expect(bytesOf()).toEqual(before);
  });

  test("a database of another program that has no table yet, but counts its own schema versions", () => {
    const foreign = new Database(file);
    foreign.run("PRAGMA user_version = 1");
    foreign.run("PRAGMA application_id = 7");
    foreign.close();
    const before = bytesOf();
    expect(refusalOf(() => openDatabase(file))).toContain("another program");
    expect(bytesOf()).toEqual(before);
  });

  test("a database of a newer version", () => {
    const newer = openDatabase(file);
    newer.run(`PRAGMA user_version = ${SCHEMA_VERSION + 1}`);
    newer.close();
    const before = bytesOf();
    for (const open of [openDatabase, openExistingDatabase]) {
      expect(refusalOf(() => open(file))).toContain(
        `newer version (schema ${SCHEMA_VERSION + 1}; this one knows ${SCHEMA_VERSION})`,
      );
    }
    expect(bytesOf()).toEqual(before);
  });

  test.each([1, 2])("a database of schema %d, which was never released", (version) => {
    const earlier = openDatabase(file);
    earlier.run(`PRAGMA user_version = ${version}`);
    earlier.close();
    const before = bytesOf();
    for (const open of [openDatabase, openExistingDatabase]) {
      expect(refusalOf(() => open(file))).toContain(`never released (schema ${version};`);
    }
    expect(bytesOf()).toEqual(before);
  });

  test("a file that is no database", () => {
    writeFileSync(file, "name,email\nAda,ada@example.com\n".repeat(100));
    const before = bytesOf();
    for (const open of [openDatabase, openExistingDatabase]) {
      expect(refusalOf(() => open(file))).toContain("not a SQLite database");
    }
    expect(bytesOf()).toEqual(before);
  });

  test("a directory, and a path below a file", () => {
    mkdirSync(file);
    expect(refusalOf(() => openDatabase(file))).toContain("can't be opened");
    writeFileSync(`${directory.path}/plain`, "");
    expect(refusalOf(() => openDatabase(`${directory.path}/plain/customers.db`))).toContain(
      "can't be opened",
    );
  });

  test.each([
    ["no/such", "no/such"],
    ["no/..", "no"],
    ["no/deeper/../..", "no/deeper"],
  ])("a path through a missing directory (%s), whose name is said (%s)", (through, missing) => {
    const refusal = refusalOf(() => openDatabase(`${directory.path}/${through}/x.db`));
    expect(refusal).toContain(`The directory ${directory.path}/${missing} of the database`);
  });

  test("one that does not exist, where a command looks at one: it is not made", () => {
    expect(refusalOf(() => openExistingDatabase(file))).toContain("does not exist");
    expect(() => bytesOf()).toThrow();
  });
});
