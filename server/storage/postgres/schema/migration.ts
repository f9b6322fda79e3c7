import { CommandRefused } from "../../../domain/command-refused.ts";
import type { Lane, LaneConnection } from "../connection/lane.ts";
import { retryDelayMs } from "../connection/persistence.ts";
import { failureOf } from "../connection/statement-failure.ts";
import {
  APPLICATION,
  COPYING,
  MIN_VERSION,
  POSTGRES_SCHEMA_VERSION,
  schemaStatements,
} from "./postgres-schema.ts";

/**
 * Codes of a migration that met another one (PostgreSQL, appendix A): names taken meanwhile, or a lost race.
 */
const MET_ANOTHER = ["23505", "42P06", "42P07", "42710", "42723", "40001", "40P01", "55P03"];
const TRIES_MAX = 20;

export type Meta = {
  readonly application: string;
  readonly schema_version: number;
  readonly min_version: number;
};

export type MigrationOutcome = "made" | "carried-over" | "up-to-date";

/**
 * Makes the schema where it is missing, or carries one of an earlier version over, in one transaction. Of
 * services that start at the same moment one makes it; the others fail on a name that is
 * taken, and look again. No advisory lock: compatible databases lack it.
 *
 * @param carriesOver whether a schema of an earlier version is carried over; else it is refused
 * @throws CommandRefused, StatementFailed
 */
export async function migrate(owner: Lane, carriesOver: boolean): Promise<MigrationOutcome> {
  for (let tries = 1; ; tries += 1) {
    const meta = await readMeta(owner);
    const isEarlier = meta !== null && meta.schema_version < POSTGRES_SCHEMA_VERSION;
    if (meta !== null && !(carriesOver && isEarlier)) {
      requireMeta(meta);
      return "up-to-date";
    }
    try {
      if (meta !== null) return (await owner.transact(carryOver)) ? "carried-over" : "up-to-date";
      await owner.transact(makeTables);
      return "made";
    } catch (error) {
      const failure = failureOf(error, true);
      if (failure.sqlState === "42501") throw new CommandRefused(NO_SCHEMA, { cause: failure });
      if (!MET_ANOTHER.includes(failure.sqlState ?? "")) throw failure;
      if (tries >= TRIES_MAX) {
        // A service that only met another one would have found its tables by now.
        throw failure.sqlState === DUPLICATE_SCHEMA
          ? new CommandRefused(FOREIGN, { cause: failure })
          : failure;
      }
      await Bun.sleep(retryDelayMs(tries));
    }
  }
}

const DUPLICATE_SCHEMA = "42P06";
const UNDEFINED_COLUMN = "42703";

const FOREIGN =
  "The schema customers of this database belongs to another program. Name another database in DATABASE_URL.";

const NO_SCHEMA =
  "The database has no schema of this service, and its role may not create one. Run `customers-server migrate` with DATABASE_URL of the owner's role, then `customers-server grants`.";

/** @returns null where the schema is missing */
export async function readMeta(connection: LaneConnection): Promise<Meta | null> {
  const [found] = await connection.run<{ is_there: boolean }>(
    "SELECT to_regclass('customers.meta') IS NOT NULL AS is_there",
    [],
  );
  if (found?.is_there !== true) return null;
  try {
    const [meta] = await connection.run<Meta>(
      "SELECT application, schema_version, min_version FROM meta",
      [],
    );
    return meta ?? null;
  } catch (error) {
    const failure = failureOf(error, true);
    throw failure.sqlState === UNDEFINED_COLUMN ? new CommandRefused(FOREIGN, { cause: failure }) : error;
  }
}

/** @throws CommandRefused for a schema on which this version may not run */
export function requireMeta(meta: Meta): void {
  const fault = metaFault(meta);
  if (fault !== null) throw new CommandRefused(fault);
}

/** @returns why this version may not run on a schema, or null where it may */
export function metaFault({ application, schema_version, min_version }: Meta): string | null {
  if (application === COPYING) {
    return "A copy into this database is not complete. Repeat the `customers-server copy` that began it: it resumes.";
  }
  if (application !== APPLICATION) {
    return FOREIGN;
  }
  if (min_version > POSTGRES_SCHEMA_VERSION) {
    return `The database was migrated for newer versions alone (schema ${schema_version}, for programs that know ${min_version}; this one knows ${POSTGRES_SCHEMA_VERSION}). Start a newer version.`;
  }
  if (schema_version < POSTGRES_SCHEMA_VERSION) {
    return `The database has schema ${schema_version}, and this version needs ${POSTGRES_SCHEMA_VERSION}. Run \`customers-server migrate\` with DATABASE_URL of the owner's role.`;
  }
  return null;
}

/** @returns whether there was something to do */
async function carryOver(transaction: LaneConnection): Promise<boolean> {
  // Locked first: of several migrations one has something to do.
  await transaction.run("UPDATE meta SET only_row = only_row", []);
  const meta = await readMeta(transaction);
  if (meta === null) throw new CommandRefused("The database has lost its schema.");
  // Everything but its age must be right.
  requireMeta({ ...meta, schema_version: POSTGRES_SCHEMA_VERSION });
  if (meta.schema_version >= POSTGRES_SCHEMA_VERSION) return false;
  for (const statement of schemaStatements(meta.schema_version)) await transaction.run(statement, []);
  await transaction.run("UPDATE meta SET schema_version = $1::int, min_version = $2::int", [
    String(POSTGRES_SCHEMA_VERSION),
    String(MIN_VERSION),
  ]);
  return true;
}

async function makeTables(transaction: LaneConnection): Promise<void> {
  for (const statement of schemaStatements(null)) await transaction.run(statement, []);
  const cursorKey = crypto.getRandomValues(new Uint8Array(32)).toHex();
  await transaction.run("INSERT INTO meta VALUES (1, $1::text, $2::int, $3::int, decode($4::text, 'hex'))", [
    APPLICATION,
    String(POSTGRES_SCHEMA_VERSION),
    String(MIN_VERSION),
    cursorKey,
  ]);
}
