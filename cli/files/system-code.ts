/**
 * The code of an error of the operating system or of SQLite: EACCES, ENOSPC, SQLITE_FULL. Those are facts to
 * report; any other error is a bug, so it is thrown again.
 */
export function systemCode(error: unknown): string {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  if (typeof code === "string" && /^(?:E[A-Z0-9]+|SQLITE_.*)$/.test(code) && !code.startsWith("ERR_")) {
    return code;
  }
  throw error;
}
