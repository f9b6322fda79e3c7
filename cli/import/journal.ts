/**
 * What became of each row of one import, so that `--resume` goes on by row. A SQLite file beside the input:
 * it survives `kill -9` at any moment, needs no memory for a million rows, and its exclusive lock, which
 * ends with the process, keeps a second import of the same file out. It holds no field of a customer and no
 * secret.
 */
import { Database } from "bun:sqlite";
import { makeRegularFile } from "../files/regular-file.ts";
import { isBusy, isForeign } from "../files/sqlite-errors.ts";
import { systemCode } from "../files/system-code.ts";
import { type Failure, failure } from "../outcome/failure.ts";

/**
 * `sent`: a request left, and no reply is recorded: the outcome is unknown until the row is sent again.
 * The others are final.
 */
type RowState = "sent" | "created" | "updated" | "unchanged" | "failed";
export type FinalState = Exclude<RowState, "sent">;
type RowRecord = {
  fingerprint: number;
  state: RowState;
  /** Why it failed, one line; a Remark on one that was created or updated; null otherwise. */
  reason: string | null;
  /** When it was sent first, in milliseconds of this machine's clock; null where that was not recorded. */
  firstSentMs: number | null;
};

/**
 * Of a row that was created after a sending before, whose reply nobody saw: `replayed`: the server knew its
 * key; `doubtful`: it did not say so, and may have made two.
 */
export type EarlierSending = "replayed" | "doubtful";

/**
 * `unclear`: of a row that was updated: a reply was lost, and it was found as wanted, perhaps by someone
 * else.
 */
export type Remark = EarlierSending | "unclear";

type ImportRecord = {
  /** Drawn once; part of every Idempotency-Key of this import. */
  importId: string;
  /** Base URL of the deployment. */
  url: string;
  /** True once every row has a final state. */
  complete: boolean;
  /** What was imported; null until that is known. */
  input: InputIdentity | null;
};

/**
 * Shows on `--resume` whether the input is still the same, those of its rows included that were not sent
 * yet.
 */
export type InputIdentity = {
  rows: number;
  /** SHA-256 over the content of all rows, in hexadecimal. */
  digest: string;
};

type RowKey = { number: number; fingerprint: number };

export type Journal = {
  readonly record: ImportRecord;
  row(number: number): RowRecord | undefined;
  /**
   * For a request that creates, before it leaves: it may leave when this is resolved. And where the outcome of a request that
   * updates is unknown.
   */
  sent(row: RowKey): Promise<void>;
  /** No sending of it can have been applied: it counts as one that was never sent. */
  notSent(row: RowKey): Promise<void>;
  /**
   * Kept soon, together with others. A row whose outcome a killed process did not keep is still `sent`, or still to be done:
   * it is sent again under its key, or read again.
   */
  finished(row: RowKey, state: Exclude<FinalState, "failed">, remark?: Remark): Promise<void>;
  failed(row: RowKey, reason: string): Promise<void>;
  counts(): Record<RowState, number>;
  /** Rows that were updated with the remark `unclear`. */
  unclear(): number;
  /**
   * Rows of this and earlier runs that may have been created twice. A row is free of doubt only where the
   * server knew the key of another row, and this row was sent again while the server still kept its key.
   */
  doubtful(): readonly number[];
  /** True where a row with this content created a customer. */
  created(fingerprint: number): boolean;
  /** The highest number of a row that has a record; 0 where there is none. */
  lastRow(): number;
  /** Keeps what is imported, where that is not known yet. */
  identify(input: InputIdentity): void;
  complete(): void;
  /** Keeps all of the above now. Throws where that, or an earlier time, failed. */
  flush(): void;
  /** Forgets every row and draws a new import id. */
  restart(): void;
  close(): void;
};

const SCHEMA = `
  CREATE TABLE IF NOT EXISTS import (import_id TEXT NOT NULL, url TEXT NOT NULL, complete INTEGER NOT NULL) STRICT;
  CREATE TABLE IF NOT EXISTS input (rows INTEGER NOT NULL, digest TEXT NOT NULL) STRICT;
  CREATE TABLE IF NOT EXISTS row (number INTEGER PRIMARY KEY, fingerprint INTEGER NOT NULL, state TEXT NOT NULL,
    reason TEXT, first_sent_ms INTEGER, finished_ms INTEGER) STRICT;
`;

/**
 * The service keeps Idempotency-Keys this long; other deployments of the specification are not known to keep
 * them longer.
 */
export const KEY_LIFETIME_MS = 24 * 3_600_000;

const NAME_ANOTHER = "Name another file with --journal PATH.";

/**
 * Opens the journal, or begins one; `path` ":memory:" keeps none. Refused while another process has it open.
 * @param input as the operator named it. Throws a UsageError where something else than a regular file has this name.
 */
export function openJournal(
  path: string,
  { url, input }: { url: string; input: string },
  now: () => number = Date.now,
): Journal | Failure {
  const refused = (message: string, hint: string) => failure("usage", message, hint);
  try {
    // Reasons may quote what the server said of a row, so the file is the operator's alone.
    if (path !== ":memory:") makeRegularFile(path, "the journal", NAME_ANOTHER);
    return useJournal(new Database(path, { create: true, strict: true }), url, now);
  } catch (error) {
    if (isBusy(error))
      return refused(
        `${input} is being imported by another process (it has ${path} open)`,
        "Wait for it to end.",
      );
    if (isForeign(error))
      return refused(`${path} is no journal of an import, or a damaged one`, `Move it away. ${NAME_ANOTHER}`);
    const message = `the journal ${path} can't be written (${systemCode(error)}); nothing was sent`;
    return refused(message, NAME_ANOTHER);
  }
}

function useJournal(database: Database, url: string, now: () => number): Journal {
  // Killed processes lose nothing of what SQLite handed to the system; FULL would only add power failures.
  database.run("PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;");
  database.run("BEGIN EXCLUSIVE");
  database.run(SCHEMA);
  const begin = () => database.run("INSERT INTO import VALUES (?, ?, 0)", [crypto.randomUUID(), url]);
  if (database.query("SELECT 1 FROM import").get() === null) begin();
  database.run("COMMIT");

  const readImport = database.query("SELECT import_id AS importId, url, complete FROM import");
  const readInput = database.query<InputIdentity, []>("SELECT rows, digest FROM input");
  const readRow = database.query<RowRecord, [number]>(
    "SELECT fingerprint, state, reason, first_sent_ms AS firstSentMs FROM row WHERE number = ?",
  );
  const put = database.query(
    `INSERT INTO row VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT (number) DO UPDATE SET fingerprint = ?2, state = ?3,
       reason = ?4, first_sent_ms = coalesce(first_sent_ms, ?5), finished_ms = ?6`,
  );
  const forget = database.query("DELETE FROM row WHERE number = ? AND state = 'sent'");
  const count = database.query<{ state: RowState; rows: number }, []>(
    "SELECT state, count(*) AS rows FROM row GROUP BY state",
  );
  const unclear = database.query<{ rows: number }, []>(
    "SELECT count(*) AS rows FROM row WHERE state = 'updated' AND reason = 'unclear'",
  );
  const last = database.query<{ number: number }, []>("SELECT coalesce(max(number), 0) AS number FROM row");
  const doubtful = database.query<{ number: number }, [number]>(
    `SELECT number FROM row WHERE state = 'created' AND reason = 'doubtful' AND NOT (
       coalesce(finished_ms - first_sent_ms < ?, false)
       AND EXISTS (SELECT 1 FROM row WHERE state = 'created' AND reason = 'replayed')) ORDER BY number`,
  );
  const restart = database.transaction(() => {
    database.run("DELETE FROM row");
    database.run("DELETE FROM import");
    database.run("DELETE FROM input");
    begin();
  });

  const changes = groupChanges(database);
  const putRow = (
    row: RowKey,
    state: RowState,
    reason: string | null,
    sentMs: number | null,
    endMs: number | null,
  ) => changes.make(() => put.run(row.number, row.fingerprint, state, reason, sentMs, endMs));

  return {
    get record() {
      const record = readImport.get() as { importId: string; url: string; complete: number };
      return { ...record, complete: record.complete === 1, input: readInput.get() };
    },
    row: (number) => readRow.get(number) ?? undefined,
    sent: (row) => putRow(row, "sent", null, now(), null),
    notSent: ({ number }) => changes.make(() => forget.run(number)),
    finished: (row, state, remark) => putRow(row, state, remark ?? null, null, now()),
    failed: (row, reason) => putRow(row, "failed", reason, null, now()),
    counts() {
      const none = { sent: 0, created: 0, updated: 0, unchanged: 0, failed: 0 };
      return Object.assign(none, Object.fromEntries(count.all().map(({ state, rows }) => [state, rows])));
    },
    unclear: () => unclear.get()?.rows ?? 0,
    doubtful: () => doubtful.all(KEY_LIFETIME_MS).map(({ number }) => number),
    created(fingerprint) {
      // Made at the first question only: a running import does not pay for it.
      database.run("CREATE INDEX IF NOT EXISTS created ON row (fingerprint) WHERE state = 'created'");
      return (
        database
          .query("SELECT 1 FROM row WHERE state = 'created' AND fingerprint = ? LIMIT 1")
          .get(fingerprint) !== null
      );
    },
    lastRow: () => last.get()?.number ?? 0,
    identify({ rows, digest }) {
      if (readInput.get() === null) database.run("INSERT INTO input VALUES (?, ?)", [rows, digest]);
    },
    complete: () => void database.run("UPDATE import SET complete = 1"),
    flush: changes.flush,
    restart,
    close() {
      changes.commit();
      database.close();
    },
  };
}

/**
 * Changes of one turn of the event loop share a transaction: with many rows in work that is a tenth of the processor time. It
 * ends when the replies that have arrived are all handled.
 */
function groupChanges(database: Database) {
  const begin = database.query("BEGIN IMMEDIATE");
  const end = database.query("COMMIT");
  let open: PromiseWithResolvers<void> | undefined;
  let broken: { error: unknown } | undefined;

  function commit(): void {
    if (open === undefined) return;
    const { resolve, reject } = open;
    open = undefined;
    try {
      if (broken === undefined) end.run();
    } catch (error) {
      broken = { error };
    }
    if (broken === undefined) {
      resolve();
      return;
    }
    if (database.inTransaction) database.run("ROLLBACK");
    reject(broken.error);
  }

  return {
    /** @returns when it is kept. Throws where it, or an earlier one, can't be kept: nothing may be sent any more. */
    make(change: () => void): Promise<void> {
      if (broken !== undefined) throw broken.error;
      try {
        if (open === undefined) {
          begin.run();
          open = Promise.withResolvers();
          open.promise.catch(() => {}); // the next change throws the error where nobody waits for it
          setImmediate(commit);
        }
        change();
      } catch (error) {
        broken = { error };
        throw error;
      }
      return open.promise;
    },
    commit,
    flush(): void {
      commit();
      if (broken !== undefined) throw broken.error;
    },
  };
}
