/**
 * What the writes of this machine replaced, so that `customers undo` can write it back. One SQLite file in the
 * operator's state directory, mode 0600, because it holds personal data: values of changed fields, whole customers
 * that were deleted. Several processes read and write it at the same time. An entry is deleted when it expires or
 * when it was undone, and its bytes are overwritten.
 */
import { Database } from "bun:sqlite";
import { chmodSync, mkdirSync } from "node:fs";
import { dirname } from "node:path";
import { parseCustomer } from "../client/customer.ts";
import { formatJson, type JsonObject } from "../client/json.ts";
import type { Environment } from "../config/sources/setting-source.ts";
import { xdgPath } from "../config/sources/xdg-path.ts";
import { makeRegularFile } from "../files/regular-file.ts";
import { isBusy, isForeign } from "../files/sqlite-errors.ts";
import { systemCode } from "../files/system-code.ts";
import { UsageError } from "../outcome/failure.ts";

export type Change = {
  /** Base URL of the deployment. */
  url: string;
  id: string;
  kind: "updated" | "deleted";
  /** Of an update: the changed fields and their earlier values, null where one was absent. Of a deletion: all of it. */
  before: JsonObject;
  /** The version that the write replaced, and the one that it made; a deletion makes none. */
  tagBefore: string;
  tagAfter: string | undefined;
};

export type RecordedChange = Change & {
  number: number;
  /** Names the creation that undoes a deletion, so that repeating it creates once. */
  idempotencyKey: string;
  /** Milliseconds of this machine's clock. */
  writtenMs: number;
  expiresMs: number;
};

export type UndoJournal = {
  record(change: Change, keepMs: number): void;
  /** The newest change of a customer; undefined where none is recorded. */
  latest(url: string, id: string): RecordedChange | undefined;
  /** All of a deployment, the newest first. */
  all(url: string): readonly RecordedChange[];
  /**
   * @param now the customer and the version that writing back made, where they are known: the change of ours that made
   * the replaced version can then be undone there.
   */
  undone(change: RecordedChange, now: { id: string; tag: string } | undefined): void;
  /** Deletes the changes of a customer, or of the deployment; returns how many. */
  forget(url: string, id?: string): number;
  close(): void;
};

/** Another process holds the file for milliseconds. */
const BUSY_TIMEOUT_MS = 5000;

const SCHEMA = `
  CREATE TABLE IF NOT EXISTS change (number INTEGER PRIMARY KEY, url TEXT NOT NULL, id TEXT NOT NULL COLLATE NOCASE,
    kind TEXT NOT NULL, before TEXT NOT NULL, tag_before TEXT NOT NULL, tag_after TEXT, idempotency_key TEXT NOT NULL,
    written_ms INTEGER NOT NULL, expires_ms INTEGER NOT NULL) STRICT;
  CREATE INDEX IF NOT EXISTS change_of_customer ON change (url, id);
`;

type Row = {
  number: number;
  url: string;
  id: string;
  kind: Change["kind"];
  before: string;
  tagBefore: string;
  tagAfter: string | null;
  idempotencyKey: string;
  writtenMs: number;
  expiresMs: number;
};

export function undoJournalPath(env: Environment): string {
  return xdgPath(env, "XDG_STATE_HOME", ".local/state", "undo.sqlite");
}

/**
 * Makes the file where it is missing, and deletes what has expired. Throws a UsageError that says why it can't be
 * used: nothing may be sent whose undoing was asked for.
 */
export function openUndoJournal(path: string, now: () => number = Date.now): UndoJournal {
  try {
    return open(path, now);
  } catch (error) {
    const code = systemCode(error);
    throw isForeign(error)
      ? new UsageError(
          `${path} is no undo journal, or a damaged one (${code}); nothing was sent`,
          "Move it away: what it recorded can then not be undone. Or write without it: CUSTOMERS_UNDO=off",
        )
      : new UsageError(
          `the undo journal ${path} can't be opened (${code}); nothing was sent`,
          "Make room or make it writable, or write without it: CUSTOMERS_UNDO=off",
        );
  }
}

function open(path: string, now: () => number): UndoJournal {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  makeRegularFile(path, "the undo journal", "Move it away, or write without it: CUSTOMERS_UNDO=off");
  chmodSync(path, 0o600); // of the log beside it too: SQLite makes it with the mode of this file
  const database = new Database(path, { readwrite: true, strict: true });
  database.run(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`);
  database.run("PRAGMA secure_delete = ON; PRAGMA synchronous = NORMAL;");
  useWal(database);
  database
    .transaction(() => {
      database.run(SCHEMA);
      database.run("DELETE FROM change WHERE expires_ms <= ?", [now()]);
    })
    .immediate();

  const columns = `number, url, id, kind, before, tag_before AS tagBefore, tag_after AS tagAfter,
    idempotency_key AS idempotencyKey, written_ms AS writtenMs, expires_ms AS expiresMs`;
  const insert = database.query(
    `INSERT INTO change (url, id, kind, before, tag_before, tag_after, idempotency_key, written_ms, expires_ms)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  );
  return {
    record({ url, id, kind, before, tagBefore, tagAfter }, keepMs) {
      const [key, writtenMs] = [crypto.randomUUID(), now()];
      const until = writtenMs + keepMs;
      insert.run(url, id, kind, formatJson(before), tagBefore, tagAfter ?? null, key, writtenMs, until);
    },
    latest(url, id) {
      const row = database
        .query<Row, [string, string]>(
          `SELECT ${columns} FROM change WHERE url = ? AND id = ? ORDER BY number DESC LIMIT 1`,
        )
        .get(url, id);
      return row === null ? undefined : changeOf(row);
    },
    all: (url) =>
      database
        .query<Row, [string]>(`SELECT ${columns} FROM change WHERE url = ? ORDER BY number DESC`)
        .all(url)
        .map(changeOf),
    undone: database.transaction(({ number, url, id, tagBefore }, now) => {
      database.run("DELETE FROM change WHERE number = ?", [number]);
      if (now === undefined) return;
      const retag = "UPDATE change SET tag_after = ? WHERE url = ? AND id = ? AND tag_after = ?";
      database.run(retag, [now.tag, url, id, tagBefore]);
      // A deleted customer was created again: all of its earlier changes follow it.
      database.run("UPDATE change SET id = ? WHERE url = ? AND id = ?", [now.id, url, id]);
    }),
    forget(url, id) {
      const { changes } =
        id === undefined
          ? database.run("DELETE FROM change WHERE url = ?", [url])
          : database.run("DELETE FROM change WHERE url = ? AND id = ?", [url, id]);
      return changes;
    },
    close: () => database.close(),
  };
}

/** Of two that switch a new file to WAL at once, SQLite refuses one without waiting: each would wait for the other. */
function useWal(database: Database): void {
  for (const giveUpMs = performance.now() + BUSY_TIMEOUT_MS; ; Bun.sleepSync(5 + 20 * Math.random())) {
    try {
      database.run("PRAGMA journal_mode = WAL");
      return;
    } catch (error) {
      if (!isBusy(error) || performance.now() > giveUpMs) throw error;
    }
  }
}

function changeOf({ before, tagAfter, ...row }: Row): RecordedChange {
  const customer = parseCustomer(before, undefined);
  if (customer === undefined) throw new Error(`the undo journal holds no customer in entry ${row.number}`);
  return { ...row, before: customer.value, tagAfter: tagAfter ?? undefined };
}
