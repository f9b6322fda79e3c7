/** How a conditional write ends: facts alone; the code that shows them makes the words. */
import type { Customer } from "../customer.ts";
import type { NamedChanges } from "../named-changes.ts";
import type { ReadRefusal } from "../refusal.ts";
import type { EntityTag } from "../wire/entity-tag.ts";
import type { CompleteReply, Reply } from "../wire/reply.ts";
import type { FieldConflict } from "./field-conflicts.ts";

/** With who changed the customer since the first reading, where refused writes said it. */
export type WriteOutcome = Ended &
  NamedChanges & {
    /** Writes that were sent. */
    attempts: number;
    /** Of these, answered with 412. */
    conflicts: number;
    /** Of these, without a reply that says what became of them: they may have been applied besides. */
    unknowns: number;
    /** The tag that was read first, and the one after the write where a reply named it. */
    before: string | undefined;
    after: string | undefined;
    requestId: string | undefined;
  };

export type Ended =
  /** A reply said so. `customer`: as the write made it, where the reply, or the reading that confirms it, shows it. */
  | {
      kind: "written";
      customer: Customer | undefined;
      /** The tag of the version that it took the place of. */
      replacedTag: string;
      /** That version, where it was read. */
      replaced: Customer | undefined;
      /** What someone else had changed since the first reading, and this write set. */
      overwritten: readonly FieldConflict[];
    }
  /** The first reading was as wanted; nothing was sent. */
  | { kind: "unchanged"; customer: Customer }
  /**
   * The state is as wanted, and no reply says that this is our doing. A reading does not show it, not even
   * after a lost reply: the tag that our own write would have made is unknown, and someone else may have
   * wanted the same.
   */
  | { kind: "as-wanted"; customer: Customer | undefined }
  | Stopped
  /** A write was sent, and it is unknown whether it was applied. `obstacle`: why no reading settled it. */
  | {
      kind: "unknown-outcome";
      /** The latest reply that said nothing about the outcome. */
      unclear: Reply | undefined;
      obstacle: Stopped | undefined;
      /** A condition was given: running it again does not mean the same. */
      claims: boolean;
    };

/** The customer is as wanted. */
export function isDone<Outcome extends Ended>(
  outcome: Outcome,
): outcome is Extract<Outcome, { kind: "written" | "unchanged" | "as-wanted" }> {
  return ["written", "unchanged", "as-wanted"].includes(outcome.kind);
}

/** Nothing of ours was applied. */
export type Stopped =
  | Conflict
  | {
      kind: "expectation";
      field: string;
      wanted: string;
      found: string | undefined;
      /** The state has the values that were asked for, by someone else's doing. */
      asWanted: boolean;
      /** Nothing was sent yet. */
      atFirst: boolean;
      current: Customer;
    }
  | { kind: "unusable-tag"; tag: Exclude<EntityTag, { kind: "strong" }> }
  /** A later reading answered 404. */
  | { kind: "deleted" }
  /** The write was answered as if there were no such customer, and yet a reading shows it. */
  | { kind: "write-not-found"; method: string; reply: CompleteReply }
  | (ReadRefusal & { method: string });

export type Conflict = {
  kind: "conflict";
  why:
    | "pinned"
    /** By the choice of `onConflict`. */
    | "changed"
    | "time-up"
    | "attempts-used"
    /** Each time the server named the refused tag as the current one. */
    | "contradicted"
    /** After a 412 the customer could not be read. */
    | "unreadable";
  fields: readonly FieldConflict[];
  base: Customer;
  theirs: Customer;
  /** The tag of now, where it is known, and the one that was sent or pinned. */
  currentTag: string | undefined;
  sentTag: string | undefined;
  reply: CompleteReply | undefined;
  unreadable: ReadRefusal | undefined;
};
