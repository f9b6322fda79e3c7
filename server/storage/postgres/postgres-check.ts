import type { CheckReport, StorageOptions } from "../storage.ts";
import type { LaneConnection } from "./connection/lane.ts";
import { SESSION } from "./connection/session.ts";
import { withLanes } from "./open-lanes.ts";
import { readMeta, requireMeta } from "./schema/migration.ts";

/** Every row is counted: of two million customers that takes 1.5 s on a busy machine, and a request has 4 s. */
const CHECK_SESSION = { ...SESSION, statement_timeout: "1800000" };
const CHECK_STATEMENT_MS = 1_900_000;

/** Each finds rows that the service never writes; constraints are PostgreSQL's own to keep. */
const FAULTS: Readonly<Record<string, string>> = {
  "customers with an id beyond the newest of their tenant":
    "SELECT count(*) AS n FROM customers c LEFT JOIN tenants t ON t.tenant = c.tenant WHERE t.newest_id IS NULL OR c.id > t.newest_id",
};

/** Looks at the schema and at what its constraints cannot say. `pg_amcheck` looks at pages and indexes. */
export function checkPostgres(databaseUrl: string, options: StorageOptions): Promise<CheckReport> {
  return withLanes(databaseUrl, options, async (lanes) => {
    const lane = lanes.lane(CHECK_SESSION, CHECK_STATEMENT_MS);
    try {
      return await look(lane);
    } finally {
      await lane.close();
    }
  });
}

async function look(lane: LaneConnection): Promise<CheckReport> {
  const count = async (sql: string): Promise<number> =>
    Number((await lane.run<{ n: string }>(sql, []))[0]?.n);
  const meta = await readMeta(lane);
  if (meta === null)
    return { faults: ["it has no schema of this service"], customers: 0, tokens: 0, schemaVersion: 0 };
  requireMeta(meta);
  const faults: string[] = [];
  for (const [what, sql] of Object.entries(FAULTS)) {
    const found = await count(sql);
    if (found > 0) faults.push(`${found} ${what}`);
  }
  const customers = await count("SELECT count(*) AS n FROM customers");
  const tokens = await count("SELECT count(*) AS n FROM tokens");
  return { faults, customers, tokens, schemaVersion: meta.schema_version };
}

/**
 * @returns whether the database has the schema of this service.
 * @throws CommandRefused when it can't be asked
 */
export async function hasPostgresSchema(databaseUrl: string, options: StorageOptions): Promise<boolean> {
  const meta = await withLanes(databaseUrl, options, (lanes) => lanes.slow.use(readMeta));
  return meta !== null;
}
