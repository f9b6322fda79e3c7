import { SQL } from "bun";

/**
 * What is known of a statement that failed.
 *
 * - `never-sent`: there was no connection, so nothing happened.
 * - `rolled-back`: the server refused it for a reason that passes, and changed nothing.
 * - `refused`: the server refused it for a reason in the statement or its values, and changed nothing.
 * - `unknown`: the answer was lost. It may have been applied, or may still be.
 */
export type FailureKind = "never-sent" | "rolled-back" | "refused" | "unknown";

export class StatementFailed extends Error {
  override readonly name = "StatementFailed";
  readonly kind: FailureKind;
  /** The SQLSTATE of the server's error, where it sent one. */
  readonly sqlState: string | null;

  constructor(kind: FailureKind, message: string, sqlState: string | null = null, cause?: unknown) {
    super(message, { cause });
    this.kind = kind;
    this.sqlState = sqlState;
  }
}

const NEVER_SENT_CODES = [
  "ERR_POSTGRES_CONNECTION_REFUSED",
  "ERR_POSTGRES_CONNECTION_FAILED",
  "ERR_POSTGRES_CONNECTION_TIMEOUT",
];

/** SQLSTATEs by their beginning (PostgreSQL, appendix A); the longest that fits decides. */
const KINDS: Readonly<Record<string, FailureKind>> = {
  "28": "never-sent", // wrong password, no such role
  "3D000": "never-sent", // no such database
  "53300": "never-sent", // too many connections
  "57P03": "never-sent", // the server starts or stops
  "40001": "rolled-back", // serialization failure
  "40P01": "rolled-back", // deadlock
  "55P03": "rolled-back", // lock_timeout
  "57014": "rolled-back", // statement_timeout, which does not run during a commit
  "25006": "rolled-back", // a standby
  "0A000": "rolled-back", // an ALTER changed what a prepared statement returns
  "26000": "rolled-back", // the prepared statement is gone
  "53": "rolled-back", // disk or memory is full
  "42P01": "rolled-back", // the schema is being changed, or is gone
  "42703": "rolled-back",
  "42501": "rolled-back", // a privilege is missing
  "57": "unknown", // the server is being stopped, or a backend died
  "08": "unknown",
  "58": "unknown",
  XX: "unknown",
};

/** Of the failures above those that a new connection alone can end. */
const LANE_IS_WRONG = ["25006", "0A000", "26000", "42P01", "42703"];

/** @param isSent whether the statement may have reached the server */
export function failureOf(error: unknown, isSent: boolean): StatementFailed {
  if (error instanceof StatementFailed) return error;
  if (!(error instanceof SQL.PostgresError)) {
    // Bun's errors of TLS are plain ones, and of a connection that never stood.
    const message = error instanceof Error ? error.message : String(error);
    return new StatementFailed(isSent ? "unknown" : "never-sent", message, null, error);
  }
  const sqlState = typeof error.errno === "string" ? error.errno : null;
  // The server's detail may hold values of a row, so only its message goes on.
  const message = sqlState === null ? error.message : `${error.message} (${sqlState})`;
  const kind = isSent ? kindOf(error.code, sqlState) : "never-sent";
  return new StatementFailed(kind, message, sqlState, error);
}

/** Whether the connection must be given up, although it still stands. */
export function spoilsLane({ sqlState }: StatementFailed): boolean {
  return sqlState !== null && LANE_IS_WRONG.includes(sqlState);
}

/** Whether the server is there, but could not take a connection in time, or not yet. */
export function isBusy({ sqlState, cause }: StatementFailed): boolean {
  const isLate = cause instanceof SQL.PostgresError && cause.code === "ERR_POSTGRES_CONNECTION_TIMEOUT";
  return isLate || sqlState === "57P03" || sqlState === "53300";
}

/** Whether the connection ended under the statement, which says nothing of the server. A deadline has no cause. */
export function wasCutOff({ kind, cause }: StatementFailed): boolean {
  return kind === "unknown" && cause instanceof SQL.PostgresError;
}

export function kindOf(code: string, sqlState: string | null): FailureKind {
  if (sqlState === null) return NEVER_SENT_CODES.includes(code) ? "never-sent" : "unknown";
  return KINDS[sqlState] ?? KINDS[sqlState.slice(0, 2)] ?? "refused";
}
