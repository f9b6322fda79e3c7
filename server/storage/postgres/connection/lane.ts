import { SQL } from "bun";
import type { PostgresAddress } from "./postgres-url.ts";
import type { SessionSettings } from "./session.ts";
import { failureOf, StatementFailed, spoilsLane } from "./statement-failure.ts";

export type Param = string | null;

export type LaneOptions = {
  readonly address: PostgresAddress;
  readonly password: () => string;
  /** Certificates (PEM) that may vouch for the server; null: no TLS. */
  readonly ca: string | null;
  readonly session: SessionSettings;
  /** How long opening a connection may take; longer while the service starts. */
  readonly connectMs: () => number;
  /** How long a statement may take before its connection is given up. */
  readonly statementMs: number;
  /**
   * Looks at a connection before anything else is sent on it.
   *
   * @param wasLate whether the one before was given up since a statement had no answer
   * @throws StatementFailed
   */
  readonly greet: (connection: LaneConnection, wasLate: boolean) => Promise<void>;
  /**
   * Called each time a connection was opened.
   *
   * @param reason why it was opened again; null for the first
   */
  readonly onConnect: (reason: string | null) => void;
  /** Called when a statement was given up. */
  readonly onDeadline: () => void;
};

/**
 * Runs one statement at a time or several one after another: the order on a lane is the order of the calls.
 */
export type LaneConnection = {
  run<Row>(text: string, params: readonly Param[]): Promise<readonly Row[]>;
};

/**
 * One connection, replaced by a new one as soon as it fails. A pool of Bun's is not used:
 * which connection runs a statement would be unknown, a dead one would be replaced without
 * a look at what answers there now, and it cannot be given up while a statement hangs.
 */
export class Lane implements LaneConnection {
  readonly #options: LaneOptions;
  #connection: OpenConnection | null = null;
  #opening: Promise<OpenConnection> | null = null;
  #isClosed = false;
  /** How the last connection that stood ended. */
  #lost: Ending | null = null;

  constructor(options: LaneOptions) {
    this.#options = options;
  }

  /** @throws StatementFailed */
  async run<Row>(text: string, params: readonly Param[]): Promise<readonly Row[]> {
    const connection = await this.connected();
    try {
      return await connection.run<Row>(text, params);
    } catch (error) {
      const failure = failureOf(error, true);
      if (spoilsLane(failure)) connection.giveUp(failure);
      throw failure;
    }
  }

  /** Gives the connection up: what it answered cannot be right. @returns what to throw */
  distrust(reason: string): StatementFailed {
    const failure = new StatementFailed("rolled-back", reason);
    this.#connection?.giveUp(failure);
    return failure;
  }

  /** A transaction of several statements. @throws StatementFailed */
  async transact<T>(work: (connection: LaneConnection) => Promise<T>): Promise<T> {
    const connection = await this.connected();
    return await connection.transact(work);
  }

  /** Opens the connection where there is none. @throws StatementFailed of the kind "never-sent" */
  connected(): Promise<OpenConnection> {
    if (this.#connection !== null) return Promise.resolve(this.#connection);
    this.#opening ??= this.#open().finally(() => {
      this.#opening = null;
    });
    return this.#opening;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#opening?.catch(() => {});
    this.#connection?.giveUp({ message: CLOSED });
  }

  async #open(): Promise<OpenConnection> {
    if (this.#isClosed) throw new StatementFailed("never-sent", CLOSED);
    const connection = new OpenConnection(this.#options, (ending) => {
      this.#lost ??= ending;
      if (this.#connection === connection) this.#connection = null;
    });
    try {
      await this.#options.greet(connection, this.#lost?.isDeadline === true);
    } catch (error) {
      const { message, sqlState } = failureOf(error, false);
      connection.giveUp({ message });
      throw new StatementFailed("never-sent", message, sqlState, error);
    }
    if (connection.isOver) throw new StatementFailed("never-sent", "the connection ended at once");
    this.#connection = connection;
    this.#options.onConnect(this.#lost?.message ?? null);
    this.#lost = null;
    return connection;
  }
}

const CLOSED = "the store is closed";

type Ending = { readonly message: string; readonly isDeadline?: boolean };

class OpenConnection implements LaneConnection {
  readonly #sql: SQL;
  readonly #options: LaneOptions;
  readonly #onOver: (ending: Ending) => void;
  isOver = false;

  constructor(options: LaneOptions, onOver: (ending: Ending) => void) {
    const { address, ca, session, connectMs } = options;
    this.#options = options;
    this.#onOver = onOver;
    this.#sql = new SQL({
      adapter: "postgres",
      // Without a URL Bun takes one of the environment, such as DATABASE_URL, and where this address has no
      // password, sends the one in there: to another server. The values below replace all of it.
      url: "postgres://",
      hostname: address.host,
      port: address.port,
      database: address.database,
      username: address.username,
      password: options.password(),
      // `tls: true` would encrypt without verifying.
      ...(ca === null ? { tls: false } : { tls: { ca, rejectUnauthorized: true, serverName: address.host } }),
      max: 1,
      idleTimeout: 0,
      maxLifetime: 0,
      connectionTimeout: connectMs() / 1000,
      connection: session,
      // Before the statements under way are rejected: what comes next opens a connection that is greeted.
      onclose: (error) => this.#end(failureOf(error ?? "the connection ended", true)),
    });
  }

  run<Row>(text: string, params: readonly Param[]): Promise<readonly Row[]> {
    return this.#before<readonly Row[]>(this.#options.statementMs, () =>
      this.#sql.unsafe<Row[]>(text, [...params]).execute(),
    );
  }

  async transact<T>(work: (connection: LaneConnection) => Promise<T>): Promise<T> {
    return await this.#sql.begin("isolation level read committed", (transaction) =>
      work({
        run: <Row>(text: string, params: readonly Param[]) =>
          this.#before<readonly Row[]>(this.#options.statementMs, () =>
            transaction.unsafe<Row[]>(text, [...params]).execute(),
          ),
      }),
    );
  }

  /**
   * Rejects whatever is under way, and ends the connection.
   * A write is never cancelled: see docs/postgres.md.
   */
  giveUp(ending: Ending): void {
    if (this.isOver) return;
    this.#end(ending);
    this.#sql.close({ timeout: 0 }).catch(() => {});
  }

  #end({ message, isDeadline = false }: Ending): void {
    this.isOver = true;
    this.#onOver({ message, isDeadline });
  }

  #before<T>(ms: number, start: () => Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#options.onDeadline();
        const message = `the database did not answer within ${ms} ms`;
        reject(new StatementFailed("unknown", message));
        this.giveUp({ message, isDeadline: true });
      }, ms);
      start()
        .then(resolve, reject)
        .finally(() => clearTimeout(timer));
    });
  }
}
