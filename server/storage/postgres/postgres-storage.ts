import { CommandRefused } from "../../domain/command-refused.ts";
import type { AuditStore } from "../audit/audit-store.ts";
import { type CustomerStore, StoreUnavailable } from "../customers/customer-store.ts";
import type { PersonStore } from "../person-store.ts";
import type { FirstStart, Storage, StorageStats } from "../storage.ts";
import type { WriteCountStore } from "../write-counts/write-count-store.ts";
import { type Lanes, WRITE_LANES } from "./connection/lanes.ts";
import { failureOf, StatementFailed, wasCutOff } from "./connection/statement-failure.ts";
import { makeSchema } from "./migrate-postgres.ts";
import { openLanes, type PostgresOptions, refusalOf } from "./open-lanes.ts";
import { postgresAuditTrail } from "./postgres-audit-trail.ts";
import { postgresCustomerStore } from "./postgres-customer-store.ts";
import { postgresFirstStart } from "./postgres-first-start.ts";
import { postgresPersons } from "./postgres-persons.ts";
import { postgresTokenStore } from "./postgres-token-store.ts";
import { postgresWriteCounts } from "./postgres-write-counts.ts";
import { BatchedReads } from "./reads/batched-reads.ts";
import { type Meta, metaFault } from "./schema/migration.ts";
import { WriteBatches } from "./writes/write-batches.ts";

/** The size of a database is asked for at most this often: PostgreSQL looks at each of its files. */
const SIZE_EVERY_MS = 60_000;

/**
 * Commits that wait for no standby are lost when another server takes over. Where there is none at all, nobody can.
 *
 * @throws CommandRefused where a synchronous standby is required
 */
async function lookAtStandbys(lanes: Lanes, options: PostgresOptions): Promise<void> {
  const { requiresSynchronousStandby = false, onFault = () => {} } = options;
  const text = `SELECT current_setting('synchronous_standby_names') = '' AS is_asynchronous,
    EXISTS (SELECT FROM pg_stat_replication) AS has_standbys`;
  const [found] = await lanes.run<{ is_asynchronous: boolean; has_standbys: boolean }>(text, []);
  if (found?.is_asynchronous !== true) return;
  if (requiresSynchronousStandby) throw new CommandRefused(ASYNCHRONOUS);
  if (found.has_standbys) onFault(ASYNCHRONOUS);
}

/** @throws CommandRefused where the role of the service may not delete old rows of the audit trail, and is to */
async function requireAuditDeletion(lanes: Lanes, options: PostgresOptions): Promise<void> {
  if (options.deletesAuditRows !== true) return;
  const text = `SELECT current_user AS role, has_table_privilege('audit', 'DELETE')
    AND has_table_privilege('audit_anchors', 'INSERT') AND has_table_privilege('audit_anchors', 'UPDATE') AS may_delete`;
  const [found] = await lanes.run<{ role: string; may_delete: boolean }>(text, []);
  if (found === undefined || found.may_delete) return;
  throw new CommandRefused(
    `AUDIT_RETENTION_DAYS is set, but the role ${found.role} may not delete rows of the audit trail. Run what \`customers-server grants --role ${found.role} --audit-retention\` prints, as the owner's role, or leave AUDIT_RETENTION_DAYS out.`,
  );
}

const ASYNCHRONOUS =
  "Commits wait for no standby, so a fail-over would lose acknowledged writes. Name the standbys in synchronous_standby_names of the primary.";

type Pulse = Meta & { readonly is_read_only: string };

/** Whether reads and writes can be answered, and whether a migration has left this version behind. */
const PULSE_TEXT = `SELECT current_setting('transaction_read_only') AS is_read_only, application, schema_version, min_version
  FROM meta WHERE (SELECT count(*) FROM (SELECT FROM customers LIMIT 1) AS one) >= 0`;

/** A PostgreSQL server. What it answers comes in a later turn of the event loop. */
export class PostgresStorage implements Storage {
  readonly customers: CustomerStore;
  readonly tokens: ReturnType<typeof postgresTokenStore>;
  readonly writeCounts: WriteCountStore;
  readonly audit: AuditStore;
  readonly persons: PersonStore;
  readonly #lanes: Lanes;
  readonly #writes: WriteBatches;
  #databaseBytes = Number.NaN;
  #sizeAt = Number.NEGATIVE_INFINITY;

  private constructor(cursorKey: Uint8Array, lanes: Lanes, reads: BatchedReads, writes: WriteBatches) {
    this.#lanes = lanes;
    this.#writes = writes;
    this.customers = postgresCustomerStore(cursorKey, lanes, reads, writes);
    this.tokens = postgresTokenStore(lanes, reads);
    this.writeCounts = postgresWriteCounts(lanes);
    this.audit = postgresAuditTrail(lanes);
    this.persons = postgresPersons(lanes);
  }

  /**
   * Connects, and makes the schema where it is missing.
   *
   * @throws CommandRefused with a sentence that says why and what to do
   */
  static async open(databaseUrl: string, options: PostgresOptions = {}): Promise<PostgresStorage> {
    const lanes = openLanes(databaseUrl, options);
    try {
      await makeSchema(lanes);
      await lanes.connect();
      await lookAtStandbys(lanes, options);
      await requireAuditDeletion(lanes, options);
      const { limits } = lanes;
      const { onCommit = () => {}, onServerEvent = () => {} } = options;
      // As text: where bytea_output is "escape", Bun can't read the bytes.
      const text = "SELECT encode(cursor_key, 'hex') AS key FROM meta";
      const [row] = await lanes.run<{ key: string }>(text, []);
      if (row === undefined) throw new Error("the database has no cursor key");
      const shared = { giveUpMs: limits.giveUpMs, pendingMax: limits.pendingMax, onRetry: lanes.onRetry };
      const reads = new BatchedReads({
        ...shared,
        pool: lanes.read,
        onBatch: (lookUps, ms) => onServerEvent({ kind: "read", lookUps, ms }),
      });
      const writes = new WriteBatches({
        ...shared,
        lanes: lanes.write,
        slowLanes: lanes.slow,
        batchesMax: WRITE_LANES,
        onCommit,
      });
      return new PostgresStorage(Uint8Array.fromHex(row.key), lanes, reads, writes);
    } catch (error) {
      await lanes.close();
      throw refusalOf(error, databaseUrl);
    }
  }

  firstStart(hasSamples: boolean, nowMs: number): Promise<FirstStart | null> {
    return postgresFirstStart(this.#lanes, hasSamples, nowMs);
  }

  async ping(): Promise<void> {
    try {
      const [now] = await this.#pulse();
      if (now === undefined) throw new StoreUnavailable("the database has lost its schema");
      if (now.is_read_only === "on") throw new StoreUnavailable("the database takes no writes now");
      const fault = metaFault(now);
      if (fault !== null) throw new StoreUnavailable(fault);
    } catch (error) {
      if (error instanceof StoreUnavailable) throw error;
      throw new StoreUnavailable(failureOf(error, true).message, { cause: error });
    }
  }

  /** A connection that ended while it was idle may show that only when it is used: then a new one is asked. */
  async #pulse(): Promise<readonly Pulse[]> {
    // A lane for reads: they go on while writes wait for a standby.
    const ask = (): Promise<readonly Pulse[]> =>
      this.#lanes.read.use((lane) => lane.run<Pulse>(PULSE_TEXT, []));
    try {
      return await ask();
    } catch (error) {
      if (error instanceof StatementFailed && wasCutOff(error)) return await ask();
      throw error;
    }
  }

  stats(): StorageStats {
    this.#measure();
    return {
      writesWaiting: this.#writes.depth,
      databaseBytes: this.#databaseBytes,
      logBytes: 0,
      freeBytes: Number.NaN,
      connections: this.#lanes.stats(),
    };
  }

  async close(): Promise<void> {
    await this.#writes.close();
    await this.tokens.close();
    await this.#lanes.close();
  }

  /** In the background: the next scrape shows it. */
  #measure(): void {
    if (performance.now() - this.#sizeAt < SIZE_EVERY_MS) return;
    this.#sizeAt = performance.now();
    const text = "SELECT pg_database_size(current_database()) AS bytes";
    this.#lanes.slow
      .use((lane) => lane.run<{ bytes: string }>(text, []))
      .then(
        ([row]) => {
          this.#databaseBytes = Number(row?.bytes);
        },
        // Reads and writes say what is wrong.
        () => {},
      );
  }
}
