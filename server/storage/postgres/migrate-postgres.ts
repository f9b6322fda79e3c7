import type { StorageOptions } from "../storage.ts";
import type { Lanes } from "./connection/lanes.ts";
import { OWNER_SESSION } from "./connection/session.ts";
import { openLanes, refusalOf } from "./open-lanes.ts";
import { migrate } from "./schema/migration.ts";

/** Of a migration, whose statements may wait for others. */
const OWNER_STATEMENT_MS = 90_000;

/**
 * Makes the schema where it is missing.
 *
 * @returns whether it was made
 * @throws CommandRefused, StatementFailed
 */
export async function makeSchema(lanes: Lanes): Promise<boolean> {
  const owner = lanes.lane(OWNER_SESSION, OWNER_STATEMENT_MS);
  try {
    return await lanes.whileBusy(() => migrate(owner));
  } finally {
    await owner.close();
  }
}

/** The same, of a command. @throws CommandRefused */
export async function migratePostgres(databaseUrl: string, options: StorageOptions): Promise<boolean> {
  const lanes = openLanes(databaseUrl, options);
  try {
    return await makeSchema(lanes);
  } catch (error) {
    throw refusalOf(error, databaseUrl);
  } finally {
    await lanes.close();
  }
}
