import { CommandRefused } from "../../domain/command-refused.ts";
import {
  COPY_TABLE_NAMES,
  type CopyRow,
  type CopySource,
  type CopyTableName,
  type CopyTarget,
  columnsOfTable,
  keyOfRow,
  keyOfTable,
  outcomeText,
  splitOutcome,
  type TargetState,
  targetStateOf,
} from "../copy/copy-tables.ts";
import type { StorageOptions } from "../storage.ts";
import { sealRows } from "./audit-sealing.ts";
import type { LaneConnection, Param } from "./connection/lane.ts";
import type { Lanes } from "./connection/lanes.ts";
import { SESSION } from "./connection/session.ts";
import { failureOf } from "./connection/statement-failure.ts";
import { makeSchema } from "./migrate-postgres.ts";
import { openLanes, refusalOf, withLanes } from "./open-lanes.ts";
import { columnsOf } from "./rows/array-literal.ts";
import { readMeta, requireMeta } from "./schema/migration.ts";
import { APPLICATION, COPYING } from "./schema/postgres-schema.ts";

/** For the connection that holds a source while it is copied. Its name keeps it from being counted as a service. */
const SOURCE_SESSION = {
  ...SESSION,
  application_name: "customers-server copy",
  statement_timeout: "60000",
  lock_timeout: "1000",
  idle_in_transaction_session_timeout: "60000",
};
const SOURCE_STATEMENT_MS = 90_000;

const TYPES = { text: "text", uuid: "uuid", integer: "bigint", digest: "text" };
const READ = {
  text: (column: string) => column,
  uuid: (column: string) => `${column}::text`,
  integer: (column: string) => `${column}::text`,
  digest: (column: string) => `encode(${column}, 'hex')`,
};
const WRITTEN = {
  text: (value: string) => value,
  uuid: (value: string) => value,
  integer: (value: string) => value,
  digest: (value: string) => `decode(${value}, 'hex')`,
};

/** Where the rows of a table are read. The fields of an outcome have a table of their own. */
const FROM: Readonly<Record<CopyTableName, string>> = {
  tenants: "tenants AS r",
  customers: "customers AS r",
  tokens: "tokens AS r",
  write_counts: "write_counts AS r",
  // With the condition of the index that has their order: without it each page sorts a whole tenant.
  audit: "(SELECT * FROM audit WHERE number IS NOT NULL) AS r",
  audit_values: `(SELECT a.tenant, a.number, v.salt, v.content FROM audit a
    JOIN audit_values v ON v.tenant = a.tenant AND v.customer_id = a.customer_id AND v.id = a.id WHERE a.number IS NOT NULL) AS r`,
  audit_anchors: "audit_anchors AS r",
  idempotency_keys: `(SELECT k.*, f.tenant, f.customer_id, f.fields
    FROM idempotency_keys k LEFT JOIN kept_fields f ON f.token_id = k.token_id AND f.key = k.key) AS r`,
};

type Run = <Row>(text: string, params: readonly Param[]) => Promise<readonly Row[]>;

class PostgresRows implements CopySource {
  readonly identity: string;
  readonly #run: Run;

  constructor(identity: string, run: Run) {
    this.identity = identity;
    this.#run = run;
  }

  page(table: CopyTableName, after: CopyRow | null, limit: number): Promise<readonly CopyRow[]> {
    const key = keyOfTable(table);
    const names = key.map(([name]) => `r.${name}`).join(", ");
    const values = key.map(([, kind], index) => WRITTEN[kind](`$${index + 2}::${TYPES[kind]}`)).join(", ");
    const where = after === null ? "" : `WHERE (${names}) > (${values})`;
    const params = after === null ? [] : keyOfRow(table, after);
    return this.#select(table, `${where} ORDER BY ${names} LIMIT $1::int`, [String(limit), ...params]);
  }

  async last(table: CopyTableName): Promise<CopyRow | null> {
    const order = keyOfTable(table).map(([name]) => `r.${name} DESC`);
    return (await this.#select(table, `ORDER BY ${order.join(", ")} LIMIT 1`, []))[0] ?? null;
  }

  async isEmpty(): Promise<boolean> {
    for (const table of COPY_TABLE_NAMES) if ((await this.last(table)) !== null) return false;
    return true;
  }

  async #select(table: CopyTableName, rest: string, params: readonly Param[]): Promise<CopyRow[]> {
    const columns = columnsOfTable(table);
    const list = columns.map(([name, kind]) => `${READ[kind](`r.${name}`)} AS ${name}`);
    if (table === "idempotency_keys") list.push("r.fields");
    const rows = await this.#run<Record<string, string | null>>(
      `SELECT ${list.join(", ")} FROM ${FROM[table]} ${rest}`,
      params,
    );
    return rows.map((row) =>
      columns.map(([name]) =>
        name === "outcome" ? outcomeText(row["outcome"] ?? "", row["fields"]) : (row[name] ?? null),
      ),
    );
  }
}

/**
 * Holds a database, so that its rows stay as they are, while `work` copies from it: services can read, and no more.
 *
 * @throws CommandRefused when a service is connected to it
 */
export async function withPostgresSource<T>(
  databaseUrl: string,
  options: StorageOptions,
  work: (source: CopySource) => Promise<T>,
): Promise<T> {
  const lanes = openLanes(databaseUrl, options);
  const lane = lanes.lane(SOURCE_SESSION, SOURCE_STATEMENT_MS);
  let isHeld = false;
  try {
    return await lane.transact(async (transaction) => {
      const source = await held(transaction, databaseUrl);
      isHeld = true;
      return await work(source);
    });
  } catch (error) {
    // Where the connection is lost, the ROLLBACK fails, and its error is what comes here.
    throw isHeld ? interrupted(error, databaseUrl) : refusalOf(error, databaseUrl);
  } finally {
    await lane.close();
    await lanes.close();
  }
}

async function held(transaction: LaneConnection, databaseUrl: string): Promise<CopySource> {
  const meta = await readMeta(transaction);
  if (meta === null) throw new CommandRefused("The source has no schema of this service.");
  requireMeta(meta);
  // First the lock, which also keeps a second copy away: a service that is not seen now can write nothing later.
  try {
    await transaction.run(
      "LOCK TABLE customers, tenants, tokens, idempotency_keys, kept_fields, write_counts IN SHARE ROW EXCLUSIVE MODE",
      [],
    );
  } catch (error) {
    const failure = failureOf(error, true);
    if (failure.sqlState !== "55P03") throw failure;
    throw new CommandRefused("The source is being written. Stop the services first, then copy.", {
      cause: failure,
    });
  }
  // Everyone else who is connected: names of applications are shown to every role.
  const [found] = await transaction.run<{ n: number }>(
    "SELECT count(*)::int AS n FROM pg_stat_activity WHERE datname = current_database() AND application_name = $1::text",
    [SESSION.application_name],
  );
  if (found === undefined || found.n > 0) {
    throw new CommandRefused(
      `Services are connected to the source (${found?.n ?? 0} connections). Stop them first, then copy.`,
    );
  }
  // No lock of its own: only writes of customers append to the trail, and only services seal it.
  while ((await sealRows(transaction, true)) > 0);
  const run: Run = (text, params) => orInterrupted(databaseUrl, () => transaction.run(text, params));
  return new PostgresRows(await identityOf(transaction), run);
}

/** What fails is named here, where it is known which of the two sides it is. @throws CommandRefused */
async function orInterrupted<T>(databaseUrl: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw interrupted(error, databaseUrl);
  }
}

function interrupted(error: unknown, databaseUrl: string): unknown {
  if (error instanceof CommandRefused) return error;
  const refusal = refusalOf(error, databaseUrl);
  if (!(refusal instanceof CommandRefused)) return refusal;
  return new CommandRefused(`${refusal.message}. Repeat the copy: it resumes.`, { cause: error });
}

async function identityOf(connection: LaneConnection): Promise<string> {
  const [row] = await connection.run<{ identity: string }>(
    "SELECT encode(cursor_key, 'hex') AS identity FROM meta",
    [],
  );
  return row?.identity ?? "";
}

/**
 * While the copy lasts, the target is marked as the database of another program, so that no service starts on it.
 *
 * @param identity of the source
 * @throws CommandRefused when it holds rows, other than a part of this copy
 */
export async function withPostgresTarget<T>(
  databaseUrl: string,
  identity: string,
  options: StorageOptions,
  work: (target: CopyTarget) => Promise<T>,
): Promise<T> {
  return await withLanes(databaseUrl, options, async (lanes) => {
    if ((await lanes.slow.use(readMeta)) === null) await makeSchema(lanes);
    const state = await lanes.slow.use((lane) =>
      lane.transact((transaction) => begin(transaction, identity)),
    );
    return await work(new PostgresTarget(identity, state, lanes, databaseUrl));
  });
}

async function begin(transaction: LaneConnection, identity: string): Promise<TargetState> {
  // Locked first, as a first start does.
  await transaction.run("UPDATE meta SET only_row = only_row", []);
  const meta = await readMeta(transaction);
  if (meta === null) throw new CommandRefused("The target has lost its schema.");
  const isMarked = meta.application === COPYING;
  requireMeta(isMarked ? { ...meta, application: APPLICATION } : meta);
  const found = await identityOf(transaction);
  const rows = new PostgresRows(found, (text, params) => transaction.run(text, params));
  const state = targetStateOf({
    isMarked,
    isEmpty: await rows.isEmpty(),
    isSameIdentity: found === identity,
  });
  if (state === "not-empty") {
    throw new CommandRefused("The target is not empty; a copy replaces nothing. Name an empty database.");
  }
  if (state === "another-copy") {
    throw new CommandRefused(
      `The target holds a part of a copy from another database. To begin anew, ${REMOVAL}, then copy again.`,
    );
  }
  if (state === "new") await mark(transaction, identity);
  return state;
}

async function mark(transaction: LaneConnection, identity: string): Promise<void> {
  try {
    await transaction.run("UPDATE meta SET application = $1::text, cursor_key = decode($2::text, 'hex')", [
      COPYING,
      identity,
    ]);
  } catch (error) {
    const failure = failureOf(error, true);
    if (failure.sqlState !== "42501") throw failure;
    throw new CommandRefused("The role of the target does not own its schema. Copy as its owner.", {
      cause: failure,
    });
  }
}

const REMOVAL = "run `DROP SCHEMA customers CASCADE` in the target";

class PostgresTarget extends PostgresRows implements CopyTarget {
  readonly state: TargetState;
  readonly removal = REMOVAL;
  readonly #run: Run;

  constructor(identity: string, state: TargetState, lanes: Lanes, databaseUrl: string) {
    // Everything may be sent again: rows that are there already are left as they are.
    const run: Run = (text, params) => orInterrupted(databaseUrl, () => lanes.run(text, params));
    super(identity, run);
    this.#run = run;
    this.state = state;
  }

  async add(table: CopyTableName, rows: readonly CopyRow[]): Promise<void> {
    if (table === "idempotency_keys") await this.#run(ADD_KEYS_TEXT, columnsOf(rows.map(keyWithFields)));
    else if (table === "audit_values") await this.#run(ADD_VALUES_TEXT, columnsOf(rows));
    else await this.#run(addText(table), columnsOf(rows));
  }

  async finish(): Promise<void> {
    await this.#run("UPDATE meta SET application = $1::text", [APPLICATION]);
  }
}

function addText(table: CopyTableName): string {
  const columns = columnsOfTable(table);
  const names = columns.map(([name]) => name).join(", ");
  const arrays = columns.map(([, kind], index) => `$${index + 1}::${TYPES[kind]}[]`).join(", ");
  const values = columns.map(([name, kind]) => WRITTEN[kind](`i.${name}`)).join(", ");
  return `INSERT INTO ${table} (${names}) SELECT ${values} FROM unnest(${arrays}) AS i(${names}) ON CONFLICT DO NOTHING`;
}

/** $1 token, $2 key, $3 digest, $4 outcome, $5 when it expires, $6 tenant, $7 customer, $8 fields. */
const ADD_KEYS_TEXT = `WITH i AS MATERIALIZED (
    SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::text[], $7::uuid[], $8::text[])
      AS i(token_id, key, digest, outcome, expires_at, tenant, customer_id, fields)
  ), k AS (
    INSERT INTO idempotency_keys (token_id, key, digest, outcome, expires_at)
    SELECT token_id, key, decode(digest, 'hex'), outcome, expires_at FROM i ON CONFLICT DO NOTHING)
  INSERT INTO kept_fields (token_id, key, tenant, customer_id, fields)
  SELECT token_id, key, tenant, customer_id, fields FROM i WHERE fields IS NOT NULL ON CONFLICT DO NOTHING`;

/** $1 tenant, $2 number, $3 salt, $4 content. Their rows of the trail were copied before. */
const ADD_VALUES_TEXT = `INSERT INTO audit_values (tenant, customer_id, id, salt, content)
  SELECT a.tenant, a.customer_id, a.id, decode(i.salt, 'hex'), i.content
  FROM unnest($1::text[], $2::bigint[], $3::text[], $4::text[]) AS i(tenant, number, salt, content)
  JOIN audit a ON a.tenant = i.tenant AND a.number = i.number ON CONFLICT DO NOTHING`;

function keyWithFields(row: CopyRow): CopyRow {
  const [tokenId = null, key = null, digest = null, outcome = null, ...rest] = row;
  const hasFields = rest[1] !== null;
  const kept = hasFields && outcome !== null ? splitOutcome(outcome) : { outcome, fields: null };
  return [tokenId, key, digest, kept.outcome, ...rest, kept.fields];
}
