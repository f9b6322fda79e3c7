import type { ConnectionStats } from "../../storage.ts";
import { Lane, type LaneConnection, type LaneOptions, type Param } from "./lane.ts";
import { LanePool } from "./lane-pool.ts";
import { persist, retryDelayMs } from "./persistence.ts";
import type { PostgresAddress } from "./postgres-url.ts";
import { PrimaryWatch } from "./primary-watch.ts";
import { BATCH_SESSION, PAGE_SESSION, SESSION, type SessionSettings } from "./session.ts";
import { awaitStandby } from "./standby-wait.ts";
import { isBusy, StatementFailed } from "./statement-failure.ts";

/** What the database and its clients can wait for. Injected, so that no test waits for a limit. */
export type PostgresLimits = {
  /** Of a running service. At the start a connection may take as long as the whole of it: nobody waits for a reply. */
  readonly connectMs: number;
  /** Of one statement, after which its connection is given up. Longer than any timeout of the session. */
  readonly statementMs: number;
  /** How long a request is tried again. A fail-over takes 2 to 5 s. */
  readonly giveUpMs: number;
  /** How many reads, and how many writes, may wait; further ones are refused at once. */
  readonly pendingMax: number;
};

export const POSTGRES_LIMITS: PostgresLimits = {
  connectMs: 1_500,
  statementMs: 4_500,
  giveUpMs: 9_000,
  pendingMax: 10_000,
};

/**
 * Two of a kind: while one waits for the server, the other's
 * batch gathers or is on its way. More gain nothing.
 */
const READ_LANES = 2;
export const WRITE_LANES = 2;
const SLOW_LANES = 2;
const PAGE_LANES = 1;

export type LanesOptions = {
  readonly address: PostgresAddress;
  readonly password: () => string;
  readonly ca: string | null;
  readonly limits: PostgresLimits;
  readonly onRetry: (failure: StatementFailed) => void;
  readonly onConnect: LaneOptions["onConnect"];
  readonly onDeadline: () => void;
};

/** The connections of a service, by purpose: what is slow or locked holds up only its own kind. */
export class Lanes {
  readonly read: LanePool;
  readonly write: LanePool;
  /** Writes that wait for a row, and all that is rare. */
  readonly slow: LanePool;
  readonly page: LanePool;
  readonly limits: PostgresLimits;
  readonly onRetry: (failure: StatementFailed) => void;
  readonly #options: LanesOptions;
  readonly #watch = new PrimaryWatch();
  #isConnected = false;

  constructor(options: LanesOptions) {
    this.#options = options;
    this.limits = options.limits;
    this.onRetry = options.onRetry;
    this.read = this.#pool(READ_LANES, BATCH_SESSION, "reads");
    this.write = this.#pool(WRITE_LANES, BATCH_SESSION, "writes");
    this.slow = this.#pool(SLOW_LANES, SESSION, "writes");
    this.page = this.#pool(PAGE_LANES, PAGE_SESSION, "reads");
  }

  /** A connection beside the pools, for what needs other settings. The caller closes it. */
  lane(session: SessionSettings, statementMs = this.limits.statementMs): Lane {
    return this.#lane({
      session,
      statementMs,
      onConnect: () => {},
      greet: (connection) => this.#watch.look(connection, session),
    });
  }

  #lane(own: Pick<LaneOptions, "session" | "statementMs" | "onConnect" | "greet">): Lane {
    const { address, password, ca, limits, onDeadline } = this.#options;
    const { connectMs: running, giveUpMs } = limits;
    const connectMs = (): number => (this.#isConnected ? running : Math.max(running, giveUpMs));
    return new Lane({ ...own, address, password, ca, connectMs, onDeadline });
  }

  /**
   * One statement on a slow lane, which may be done again after its answer was lost.
   *
   * @throws StoreUnavailable, StatementFailed of the kind "refused"
   */
  run<Row>(text: string, params: readonly Param[]): Promise<readonly Row[]> {
    return this.#persist(this.slow, (lane) => lane.run<Row>(text, params), true);
  }

  /** A statement that must not be sent twice. @throws as {@link run}; StoreUnavailable where its answer was lost */
  runOnce<Row>(text: string, params: readonly Param[]): Promise<readonly Row[]> {
    return this.#persist(this.slow, (lane) => lane.run<Row>(text, params), false);
  }

  /** A statement that reads a page. @throws as {@link run} does */
  readPage<Row>(text: string, params: readonly Param[]): Promise<readonly Row[]> {
    return this.#persist(this.page, (lane) => lane.run<Row>(text, params), true);
  }

  /**
   * A transaction on a slow lane.
   *
   * @param work may be done again after its answer was lost
   * @throws as {@link run} does, and what `work` throws
   */
  transact<T>(work: (transaction: LaneConnection) => Promise<T>): Promise<T> {
    return this.#persist(this.slow, (lane) => lane.transact(work), true);
  }

  #persist<T>(pool: LanePool, work: (lane: Lane) => Promise<T>, isRepeatable: boolean): Promise<T> {
    const { onRetry, limits } = this;
    const attempt = (giveUpAt: number): Promise<T> => pool.use(work, giveUpAt);
    return persist(attempt, { isRepeatable, giveUpMs: limits.giveUpMs, onRetry });
  }

  /**
   * Opens every connection: what is wrong shows at the start, and their file descriptors
   * are taken before clients could use them up. A server that is busy is asked again:
   * when twelve services started at once, it took longer than a connection may take.
   *
   * @throws StatementFailed
   */
  async connect(): Promise<void> {
    await this.whileBusy(() => Promise.all(this.#pools.map((pool) => pool.connect())));
    this.#isConnected = true;
  }

  /** @throws StatementFailed as `work` does, but for a server that is busy only when the time is up */
  async whileBusy<T>(work: () => Promise<T>): Promise<T> {
    const giveUpAt = performance.now() + this.limits.giveUpMs;
    for (let tries = 1; ; tries += 1) {
      try {
        return await work();
      } catch (error) {
        if (!(error instanceof StatementFailed) || !isBusy(error) || performance.now() >= giveUpAt)
          throw error;
        await Bun.sleep(retryDelayMs(tries));
      }
    }
  }

  stats(): ConnectionStats[] {
    const purposes = ["read", "write", "slow", "page"] as const;
    return purposes.map((purpose) => ({ purpose, busy: this[purpose].busy, waiting: this[purpose].waiting }));
  }

  async close(): Promise<void> {
    await Promise.all(this.#pools.map((pool) => pool.close()));
  }

  get #pools(): readonly LanePool[] {
    return [this.read, this.write, this.slow, this.page];
  }

  #pool(count: number, session: SessionSettings, what: "reads" | "writes"): LanePool {
    const { statementMs, pendingMax } = this.limits;
    const { onConnect } = this.#options;
    const greet: LaneOptions["greet"] = async (connection, wasLate) => {
      await this.#watch.look(connection, session);
      if (wasLate && what === "writes") await awaitStandby(connection, statementMs);
    };
    const lanes = Array.from({ length: count }, () => this.#lane({ session, statementMs, onConnect, greet }));
    return new LanePool(lanes, pendingMax);
  }
}
