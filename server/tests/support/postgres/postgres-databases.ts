/**
 * The server on which `bun run test:postgres` runs every
 * test that starts the service; its URL comes from there.
 */
const SERVER_URL = process.env["TEST_POSTGRES"] ?? "";

/** Which engine the services of this run are started on. */
export const ENGINE = SERVER_URL === "" ? "sqlite" : "postgres";

const made = new Set<string>();

/**
 * The database in place of a file: made, empty, where a test asks for it first.
 *
 * @param file the path under which SQLite would keep it
 */
export function postgresUrlOf(file: string): string {
  const name = `test_${Bun.hash(file).toString(36)}`;
  if (!made.has(name)) {
    made.add(name);
    const psql = ["psql", "-X", "-q", "-d", SERVER_URL, "-c", `CREATE DATABASE ${name}`];
    const { exitCode, stderr } = Bun.spawnSync(psql, { stdout: "ignore", stderr: "pipe" });
    if (exitCode !== 0) throw new Error(`${name} was not created: ${stderr}`);
  }
  return SERVER_URL.replace(/[^/]*$/, name);
}

/** Runs SQL in it. */
export function runOnPostgres(file: string, sql: string): void {
  const psql = ["psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-d", postgresUrlOf(file), "-c", sql];
  const { exitCode, stderr } = Bun.spawnSync(psql, { stdout: "ignore", stderr: "pipe" });
  if (exitCode !== 0) throw new Error(`${sql} failed: ${stderr}`);
}
