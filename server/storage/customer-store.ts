import type { CustomerChanges, CustomerFields, NewCustomer, Replacement } from "../domain/customer.ts";
import type { RowVersion } from "../domain/entity-tag.ts";
import type { CustomerStatus } from "../domain/field-registry.ts";
import type { MaybePromise } from "../domain/maybe-promise.ts";
import type { Projection } from "../domain/projection.ts";

/** A customer as a read returns it: the fields of the projection, no others, and the version of the whole. */
export type StoredCustomer = { readonly rowVersion: RowVersion; readonly fields: CustomerFields };

export type PageQuery = {
  readonly tenant: string;
  /** The id after which the page begins, or null for the first. */
  readonly after: string | null;
  /** 1 or more. */
  readonly limit: number;
  readonly status: CustomerStatus | null;
  /** Matched exactly. */
  readonly email: string | null;
};

export type Page = {
  readonly items: readonly StoredCustomer[];
  /** The id of the last item where more follow, else null. */
  readonly lastId: string | null;
};

/** Which row a write is for, and which version it expects there; "any" only while a rollout allows it. */
export type WriteTarget = {
  readonly tenant: string;
  readonly id: string;
  readonly expected: RowVersion | "any";
};

/**
 * What became of a write. `applied` is said only once it is durable; `fields` is the state that it made, as
 * projected. `stale`: another version is stored, and nothing was changed. `missing`: no such row.
 */
export type WriteOutcome =
  | { readonly kind: "applied"; readonly rowVersion: RowVersion; readonly fields: CustomerFields }
  | { readonly kind: "stale"; readonly rowVersion: RowVersion }
  | { readonly kind: "missing" };

export type RemoveOutcome = Exclude<WriteOutcome, { kind: "applied" }> | { readonly kind: "removed" };

/** Makes a create safe to repeat: one customer for one key of one client of one tenant, for as long as it lives. */
export type IdempotencyKey = {
  readonly client: string;
  readonly key: string;
  /** Distinguishes bodies: SHA-256, hexadecimal. */
  readonly digest: string;
  readonly nowMs: number;
};

/** `replayed`: the key made this customer before, in this first version; nothing was written. */
export type CreateOutcome =
  | { readonly kind: "created" | "replayed"; readonly id: string; readonly rowVersion: RowVersion }
  | { readonly kind: "key-reused" };

/** How long an idempotency key is kept. */
export const IDEMPOTENCY_KEY_MS = 24 * 3_600_000;

/**
 * Customers, kept. An engine keeps every rule of customer-store.contract.ts. All of a tenant's calls see that
 * tenant's rows only. A call that the engine can't answer fails with {@link StoreUnavailable}: nothing that it
 * would have written was acknowledged.
 */
export interface CustomerStore {
  /** 32 bytes that seal paging cursors: the same for every process on this store, and after a restart. */
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
  ): Promise<CreateOutcome>;
  /** Compares and sets in one statement. */
  replace(target: WriteTarget, next: Replacement, projection: Projection): Promise<WriteOutcome>;
  patch(target: WriteTarget, changes: CustomerChanges, projection: Projection): Promise<WriteOutcome>;
  remove(target: WriteTarget): Promise<RemoveOutcome>;
  /** Fails with {@link StoreUnavailable} when reads can't be answered. */
  ping(): MaybePromise<void>;
  /** Finishes the writes that it has taken, then closes. */
  close(): Promise<void>;
}

/** The engine can't answer: locked, full, unreadable. The cause is for the log, never for a client. */
export class StoreUnavailable extends Error {
  override readonly name = "StoreUnavailable";
}
