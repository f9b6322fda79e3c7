import type { RowVersion } from "../../../domain/entity-tag.ts";
import type {
  CreateOutcome,
  IdempotencyKey,
  RemoveOutcome,
  WriteOutcome,
  WriteTarget,
} from "../../customers/customer-store.ts";
import type { Param } from "../connection/lane.ts";

export type Outcome = CreateOutcome | WriteOutcome | RemoveOutcome;

/** A row that a statement returns for a write that it applied. */
export type AppliedRow = { readonly n: number } & Readonly<Record<string, unknown>>;

/** Writes that one statement can do together. */
export type WriteKind = {
  /** For a batch: it leaves out rows that another session holds. */
  readonly batchText: string;
  /** For one write: it waits for them. */
  readonly aloneText: string;
  readonly params: (writes: readonly QueuedWrite[]) => readonly Param[];
};

export type QueuedWrite = {
  readonly kind: WriteKind;
  /** Null for a creation, which has no row yet. */
  readonly target: WriteTarget | null;
  /** Locks are taken in this order; of one batch no two are equal, but those of creations. */
  readonly lockKey: string;
  /** One element for each column of the kind's batch. */
  readonly values: readonly Param[];
  /**
   * Drawn here, never by the database: a write can then be recognised, and sent again. Null for a removal.
   */
  readonly next: RowVersion | null;
  readonly key: IdempotencyKey | null;
  /**
   * Whether it may be sent again after its answer was lost:
   * under a version or a key a second one changes nothing.
   */
  readonly isRepeatable: boolean;
  readonly outcomeOf: (row: AppliedRow) => Outcome;
  /**
   * Reads what the outcome of an update shows, where the answer to it was lost. Null where it shows nothing.
   */
  readonly rereadText: string | null;
};
