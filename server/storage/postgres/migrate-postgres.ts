import type { StorageOptions } from "../storage.ts";
import type { Lanes } from "./connection/lanes.ts";
import { OWNER_SESSION } from "./connection/session.ts";
import { withLanes } from "./open-lanes.ts";
import { type MigrationOutcome, migrate } from "./schema/migration.ts";

/** Of a migration, whose statements may wait for others. */
const OWNER_STATEMENT_MS = 90_000;

/**
 * Makes the schema where it is missing.
 *
 * @param carriesOver whether one of an earlier version is carried over; else it is refused
 * @throws CommandRefused, StatementFailed
 */
export async function makeSchema(lanes: Lanes, carriesOver = false): Promise<MigrationOutcome> {
  const owner = lanes.lane(OWNER_SESSION, OWNER_STATEMENT_MS);
  try {
    return await lanes.whileBusy(() => migrate(owner, carriesOver));
  } finally {
    await owner.close();
  }
}

/** Makes the schema, or carries one of an earlier version over. @throws CommandRefused */
export function migratePostgres(databaseUrl: string, options: StorageOptions): Promise<MigrationOutcome> {
  return withLanes(databaseUrl, options, (lanes) => makeSchema(lanes, true));
}
