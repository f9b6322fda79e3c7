import type { AuditedOperation } from "../domain/audit/audit-entry.ts";
import type { CustomerFields, NewCustomer } from "../domain/customer/customer.ts";
import type { RowVersion } from "../domain/entity-tag.ts";
import type { MaybePromise } from "../domain/maybe-promise.ts";

/** How many rows of kept values one transaction of an erasure deletes, and one page of a search reads. */
export const VALUES_PAGE = 500;

/** How many kept replies one page of an export reads. */
export const REPLIES_PAGE = 500;

/** Who erases: an operator on the command line, without a token and a request. */
export const PERSON_ERASE = {
  client: "person-erase",
  tokenPrefix: "",
  requestId: "",
  operation: "erase" satisfies AuditedOperation,
  isWithoutIfMatch: false,
} as const;

/** All that is stored of a customer in its own row. */
export type CustomerRecord = NewCustomer & {
  readonly id: string;
  readonly rowVersion: RowVersion;
  /** ms since 1970. */
  readonly createdAtMs: number;
};

/** What a repeated request under an Idempotency-Key would be answered. */
export type KeptReply = {
  readonly expiresAtMs: number;
  readonly fields: CustomerFields;
  /** Where the next page begins. */
  readonly position: string;
};

/** @returns the token and the key of {@link KeptReply.position}, in the order of both; before all for null */
export function replyPosition(position: string | null): readonly [tokenId: string, key: string] {
  return position === null ? ["", ""] : JSON.parse(position);
}

/** Values that are kept beside a row of the audit trail. */
type PersonValues = {
  readonly customerId: string;
  readonly content: string;
  /** Where the next page begins. */
  readonly position: string;
};

/** What one erasure took. All nothing where the customer had been erased before. */
export type Erased = {
  readonly wasStored: boolean;
  readonly keptReplies: number;
  /** Beside how many rows of the audit trail values were deleted. */
  readonly values: number;
};

/**
 * What a database holds of persons beside the history: to find, to export and to erase. For operators, who see
 * all tenants. An engine keeps every rule of person-store.contract.ts.
 */
export interface PersonStore {
  /** All that ever had a customer, in the order of bytes. */
  tenants(): MaybePromise<readonly string[]>;
  /** The ids of the customers that have an email now. @param folded as foldEmail folds it */
  withEmail(tenant: string, folded: string): MaybePromise<readonly string[]>;
  record(tenant: string, id: string): MaybePromise<CustomerRecord | null>;
  /** A page of at most {@link REPLIES_PAGE}. @param after the position of the last one of the page before */
  keptReplies(tenant: string, id: string, after: string | null): MaybePromise<readonly KeptReply[]>;
  countKeptReplies(tenant: string, id: string): MaybePromise<number>;
  /** A page of at most {@link VALUES_PAGE}. @param after the position of the last one of the page before */
  values(tenant: string, after: string | null): MaybePromise<readonly PersonValues[]>;
  /** Beside how many rows of the audit trail values of a customer are kept. */
  countValues(tenant: string, id: string): MaybePromise<number>;
  /**
   * Removes a customer as a removal does, with its kept replies, and appends the erasure to the audit trail, in one
   * transaction. Values that the trail keeps may go in further ones: done again, it finishes what was cut off.
   *
   * @throws CommandRefused as {@link requireErasureRight}; the customer is left as it was then
   */
  erase(tenant: string, id: string): Promise<Erased>;
  /** @throws CommandRefused where the role of a database server may not delete values that the audit trail keeps */
  requireErasureRight(): MaybePromise<void>;
  /**
   * Takes what was erased out of the write-ahead log of a database file, and waits for readers as long as a lock.
   *
   * @returns false where another process still reads, so that the log keeps it for a while
   */
  emptyLog(): MaybePromise<boolean>;
}
