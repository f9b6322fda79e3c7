import { type Database, SQLiteError } from "bun:sqlite";
import { CommandRefused } from "../../../domain/command-refused.ts";
import type { CheckReport } from "../../storage.ts";
import { openExistingDatabase, schemaVersion } from "./sqlite-database.ts";

const FAULTS_MAX = 20;
const DAMAGE = ["SQLITE_CORRUPT", "SQLITE_NOTADB", "SQLITE_IOERR", "SQLITE_ERROR"];

/**
 * Looks at the structure of every page and index, and at every constraint. A value that was changed
 * inside a row (a flipped bit of a name) is not found: SQLite keeps no checksum of it, and one of
 * our own over the whole row would make every read fetch columns that its caller may not see.
 *
 * @throws CommandRefused when it can't be opened as one of ours, or can't be looked at now (another process
 *   holds its lock): that says nothing of its soundness
 */
export function checkDatabase(path: string, lockWaitMs?: number): CheckReport {
  let db: Database;
  try {
    db = openExistingDatabase(path, lockWaitMs);
  } catch (error) {
    const cause = error instanceof CommandRefused ? error.cause : null;
    if (cause instanceof SQLiteError && cause.code?.startsWith("SQLITE_CORRUPT")) return damaged(cause);
    throw error;
  }
  try {
    const faults = db
      .query<{ integrity_check: string }, []>(`PRAGMA integrity_check(${FAULTS_MAX})`)
      .all()
      .map((row) => row.integrity_check)
      .filter((line) => line !== "ok");
    const count = (table: string): number =>
      db.query<{ n: number }, []>(`SELECT count(*) AS n FROM ${table}`).get()?.n ?? 0;
    return {
      faults,
      customers: count("customers"),
      tokens: count("tokens"),
      schemaVersion: schemaVersion(db),
    };
  } catch (error) {
    if (!(error instanceof SQLiteError)) throw error;
    const code = error.code ?? "";
    if (!DAMAGE.some((prefix) => code.startsWith(prefix))) {
      throw new CommandRefused(`${path} can't be checked now: ${error.message}.`, { cause: error });
    }
    return damaged(error);
  } finally {
    db.close();
  }
}

/** A page too damaged to be read ends the check, and is its finding. */
function damaged({ message }: SQLiteError): CheckReport {
  return { faults: [message], customers: 0, tokens: 0, schemaVersion: 0 };
}
