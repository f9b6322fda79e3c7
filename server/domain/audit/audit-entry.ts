import type { FieldName } from "../customer/field-registry.ts";
import type { RowVersion } from "../entity-tag.ts";
import type { KeptValues } from "./kept-values.ts";

export type AuditedOperation = "create" | "replace" | "patch" | "delete" | "erase";

/** Who writes, and how: what the audit trail says of a write beside the write itself. */
export type WriteOrigin = {
  readonly client: string;
  /** The part of the token that is shown in lists. */
  readonly tokenPrefix: string;
  readonly requestId: string;
  readonly operation: AuditedOperation;
  /** Whether a rollout let it pass without If-Match. Never of a creation, which needs none. */
  readonly isWithoutIfMatch: boolean;
  /** Whether the policy wants the values of the changed fields kept beside the row. */
  readonly keepsValues: boolean;
};

/** One accepted write. */
export type AuditEntry = Omit<WriteOrigin, "keepsValues"> & {
  readonly tenant: string;
  readonly customerId: string;
  /** ms since 1970, by the clock of the store. */
  readonly timeMs: number;
  /** Null of a creation. */
  readonly versionBefore: RowVersion | null;
  /** Null of a removal. */
  readonly versionAfter: RowVersion | null;
  /** The fields whose values changed, in registry order. A creation names all that are stored. */
  readonly changed: readonly FieldName[];
  /** Whether it came under an Idempotency-Key. A repetition changes nothing, and has no entry. */
  readonly hasKey: boolean;
  /** Of the values that were kept beside it; null where none were. It stays when they are erased. */
  readonly valuesDigest: string | null;
  /** Null where none were kept, and where they were erased. */
  readonly values: KeptValues | null;
};

/** The fields of a customer that a write stores, in registry order. */
export const AUDITED_FIELDS = ["name", "email", "status"] as const satisfies readonly FieldName[];
