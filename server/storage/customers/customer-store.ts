import type { WriteOrigin } from "../../domain/audit/audit-entry.ts";
import type { CustomerChanges, CustomerFields, NewCustomer } from "../../domain/customer/customer.ts";
import type { CustomerStatus } from "../../domain/customer/field-registry.ts";
import type { RowVersion } from "../../domain/entity-tag.ts";
import type { MaybePromise } from "../../domain/maybe-promise.ts";
import type { ExpectedVersion } from "../../domain/precondition.ts";
import type { Projection } from "../../domain/projection.ts";

/** A customer as a read returns it: the fields of the projection, no others, and the version of the whole. */
export type StoredCustomer = { readonly rowVersion: RowVersion; readonly fields: CustomerFields };

type PageQuery = {
  readonly tenant: string;
  /** The id after which the page begins, or null for the first. */
  readonly after: string | null;
  /** 1 or more. */
  readonly limit: number;
  readonly status: CustomerStatus | null;
  /** Matched as foldEmail folds it. */
  readonly email: string | null;
};

export type Page = {
  readonly items: readonly StoredCustomer[];
  /** The id of the last item where more follow, else null. */
  readonly lastId: string | null;
};

/** Which row a write is for, and which version it expects there. */
export type WriteTarget = {
  readonly tenant: string;
  readonly id: string;
  readonly expected: ExpectedVersion;
};

/**
 * What became of a write. `applied` is said only once it is durable; `fields` is the state that it made, as
 * projected. `stale`: a version that was not expected is stored, and nothing was changed. `missing`: no such
 * row. `key-reused`: another request came under this idempotency key, and nothing was changed. A replayed
 * outcome is that of the first request under the key, whatever has happened to the row since; nothing was
 * written again. Its `fields` are null once the row was deleted: no field outlives its customer.
 */
export type WriteOutcome =
  | {
      readonly kind: "applied";
      readonly rowVersion: RowVersion;
      readonly fields: CustomerFields | null;
      readonly isReplayed: boolean;
    }
  | { readonly kind: "stale"; readonly rowVersion: RowVersion }
  | { readonly kind: "missing" }
  | { readonly kind: "key-reused" };

export type RemoveOutcome =
  | Exclude<WriteOutcome, { kind: "applied" }>
  | { readonly kind: "removed"; readonly isReplayed: boolean };

export type CreateOutcome =
  | {
      readonly kind: "created";
      readonly id: string;
      /** Its first version. */
      readonly rowVersion: RowVersion;
      readonly isReplayed: boolean;
    }
  | { readonly kind: "key-reused" };

/**
 * Makes a write safe to repeat: one outcome for one key of one token, for {@link
 * IDEMPOTENCY_KEY_MS}. Only accepted writes are remembered; a refused one is evaluated again.
 */
export type IdempotencyKey = {
  readonly tokenId: string;
  readonly key: string;
  /** Distinguishes requests: SHA-256, hexadecimal, of all that decides the outcome. */
  readonly digest: string;
  readonly nowMs: number;
};

/** How long an idempotency key is kept. */
export const IDEMPOTENCY_KEY_MS = 24 * 3_600_000;

/** The maximum number of keys that one purge deletes: 300,000 at once held every request up for 1.9 s. */
export const PURGED_KEYS_MAX = 500;

/**
 * Customers, kept. An engine keeps every rule of customer-store.contract.ts, and appends a row to the audit
 * trail in the transaction of each write that it accepts (audit-store.contract.ts). All of a tenant's calls see that
 * tenant's rows only. A call that the engine can't answer fails with {@link
 * StoreUnavailable}: nothing that it would have written was acknowledged.
 */
export interface CustomerStore {
  /** 32 bytes that encrypt paging cursors: the same for every process on this store, and after a restart. */
  readonly cursorKey: Uint8Array;
  /** Reads the columns of the projection and the row version, no others. */
  read(tenant: string, id: string, projection: Projection): MaybePromise<StoredCustomer | null>;
  rowVersion(tenant: string, id: string): MaybePromise<RowVersion | null>;
  /** In the order of ids, each customer once however rows come and go between pages. */
  page(query: PageQuery, projection: Projection): MaybePromise<Page>;
  create(
    tenant: string,
    customer: NewCustomer,
    nowMs: number,
    key: IdempotencyKey | null,
    origin: WriteOrigin,
  ): Promise<CreateOutcome>;
  /** PUT and PATCH: compares and sets in one statement. */
  update(
    target: WriteTarget,
    changes: CustomerChanges,
    projection: Projection,
    key: IdempotencyKey | null,
    origin: WriteOrigin,
  ): Promise<WriteOutcome>;
  remove(target: WriteTarget, key: IdempotencyKey | null, origin: WriteOrigin): Promise<RemoveOutcome>;
  /** Whether an accepted write is remembered under this key, whatever its request was. */
  isKeyUsed(key: Pick<IdempotencyKey, "tokenId" | "key" | "nowMs">): MaybePromise<boolean>;
  /** Deletes expired keys, at most {@link PURGED_KEYS_MAX}. @returns how many it deleted */
  purgeKeys(nowMs: number): Promise<number>;
}

/** The engine can't answer: locked, full, unreadable. The cause is for the log, never for a client. */
export class StoreUnavailable extends Error {
  override readonly name = "StoreUnavailable";
  /** Whether a write may have been applied although its answer was lost. */
  readonly isOutcomeUnknown: boolean;
  /** Whether the database is damaged, so that trying again does not help. */
  readonly isDamaged: boolean;

  constructor(
    message: string,
    { isOutcomeUnknown = false, isDamaged = false, ...options }: StoreUnavailableOptions = {},
  ) {
    super(message, options);
    this.isOutcomeUnknown = isOutcomeUnknown;
    this.isDamaged = isDamaged;
  }
}

type StoreUnavailableOptions = ErrorOptions & {
  readonly isOutcomeUnknown?: boolean;
  readonly isDamaged?: boolean;
};
