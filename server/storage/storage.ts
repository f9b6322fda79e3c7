import type { MaybePromise } from "../domain/maybe-promise.ts";
import type { AuditStore } from "./audit/audit-store.ts";
import type { CustomerStore } from "./customers/customer-store.ts";
import type { PersonStore } from "./person-store.ts";
import type { TokenStore } from "./tokens/token-store.ts";
import type { WriteCountStore } from "./write-counts/write-count-store.ts";

/** What the first start on an empty database made. */
export type FirstStart = {
  /** The file that holds the admin token, absolute. */
  readonly tokenFile: string;
  /** Null without samples. */
  readonly sampleId: string | null;
};

/** Connections to a database server that serve one purpose. */
export type ConnectionStats = {
  readonly purpose: "read" | "write" | "slow" | "page";
  /** How many run a statement. */
  readonly busy: number;
  /** How many statements wait for one of them. */
  readonly waiting: number;
};

/** What `check` found in a database. */
export type CheckReport = {
  /** Empty where it is sound. */
  readonly faults: readonly string[];
  readonly customers: number;
  readonly tokens: number;
  readonly schemaVersion: number;
};

/** Plain numbers, for metrics. */
export type StorageStats = {
  /** Writes that wait for their commit, or whose commit is under way. */
  readonly writesWaiting: number;
  readonly databaseBytes: number;
  /** Bytes of the write-ahead log; 0 where the engine has none of its own. */
  readonly logBytes: number;
  /** Bytes that are free on the file system of the database; NaN where that is not in this machine's sight. */
  readonly freeBytes: number;
  /** None where the engine is in this process. */
  readonly connections: readonly ConnectionStats[];
};

/** One transaction that was committed. */
export type Commit = {
  /** How many writes it held. */
  readonly writes: number;
  /** From its begin to its end. */
  readonly ms: number;
  /** In the thread that answers requests, beside it, or in a database server. */
  readonly where: "inline" | "thread" | "server";
};

/**
 * The customers of a million fit, and are read as fast as
 * those of a thousand. A smaller database takes its size.
 */
export const DATABASE_MEMORY_MIB = 256;

/** How long a start, a command or a batch of writes waits for a lock that another process holds. */
export const LOCK_WAIT_MS = 5_000;

/** Why a statement is sent again: it had no connection, the server rolled it back, or its answer was lost. */
export const RETRY_REASONS = ["never-sent", "rolled-back", "unknown"] as const;

/** What happened between the service and a database server. */
export type ServerEvent =
  /** A connection stands: at the start, then with the reason why the one before it ended. */
  | { readonly kind: "connected"; readonly reason: string | null }
  | { readonly kind: "retry"; readonly reason: (typeof RETRY_REASONS)[number] }
  /** A statement got no answer in time, and its connection was given up. */
  | { readonly kind: "deadline" }
  /** Look-ups were answered by one statement. */
  | { readonly kind: "read"; readonly lookUps: number; readonly ms: number };

export type StorageOptions = {
  /** Called after each commit. It must not throw. */
  readonly onCommit?: (commit: Commit) => void;
  /** Called where the engine is a server. It must not throw. */
  readonly onServerEvent?: (event: ServerEvent) => void;
  /** Memory for the pages of the database, in MiB, where the engine keeps them itself. */
  readonly memoryMib?: number;
  /** A file of certificates (PEM) that may vouch for a database server; null: those of the runtime. */
  readonly caFile?: string | null;
  /**
   * Whether batches of writes that would hold up reads are committed in a thread of their own, where the engine
   * is in this process. For a service: the thread takes most of the time to open, and a command has no reads to hold up.
   */
  readonly hasWriterThread?: boolean;
  /** {@link LOCK_WAIT_MS} where it is left out. */
  readonly lockWaitMs?: number;
  /** Whether a database server whose commits wait for no standby is refused. */
  readonly requiresSynchronousStandby?: boolean;
  /** Whether a role of a database server that may not delete rows of the audit trail is refused. */
  readonly deletesAuditRows?: boolean;
  /** Called with a sentence when the engine lost something that it replaces by itself. */
  readonly onFault?: (reason: string) => void;
};

/** A database of customers and tokens, whatever the engine. */
export interface Storage {
  readonly customers: CustomerStore;
  readonly tokens: TokenStore;
  readonly writeCounts: WriteCountStore;
  readonly audit: AuditStore;
  readonly persons: PersonStore;
  /**
   * Makes an admin token, and samples to try things on. The decision and all of its rows are one transaction.
   *
   * @returns null when the database has tokens already
   */
  firstStart(hasSamples: boolean, nowMs: number): Promise<FirstStart | null>;
  /** Fails with StoreUnavailable when reads or writes cannot be answered. */
  ping(): MaybePromise<void>;
  stats(): StorageStats;
  /** Finishes the writes that it has taken, then closes. */
  close(): Promise<void>;
}
