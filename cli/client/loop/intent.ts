/** What a conditional write is for: the request for a state, and when a state is as wanted. Pure. */
import { type Customer, memberName, REGISTRY } from "../customer.ts";
import type { Json } from "../json.ts";
import { type ApiRequest, deleteCustomer, patchCustomer, replaceCustomer } from "../wire/request.ts";
import {
  type Change,
  conflictingFields,
  differingFields,
  type FieldConflict,
  hasReached,
  hasValues,
  showsNoOtherText,
} from "./field-conflicts.ts";
import { type Confirms, confirmsChange, confirmsDeletion } from "./verdict.ts";

export type WriteIntent = {
  /**
   * Fields that the reads ask for; "whole" where one is concerned that can't be asked for by name, undefined
   * where the server's default set will do.
   */
  fields: readonly string[] | "whole" | undefined;
  /** What will do where these credentials may not read all of `fields`. */
  fieldsAtLeast: readonly string[] | undefined;
  /** The write for this state, with this tag as its condition. */
  request(current: Customer, tag: string): ApiRequest;
  /**
   * True where the request says all by itself, so that a state which is not the tag's can't leak into it.
   */
  selfContained: boolean;
  /** Nothing would have to be sent. */
  isUnchanged(current: Customer): boolean;
  /** The state that our own write leaves behind, where `base` was read before it; "gone" after a 404. */
  isAsWanted(base: Customer, state: Customer | "gone"): boolean;
  /** The state shows another text than the one that was written. */
  contradicts(state: Customer): boolean;
  /** True where a reply with a status of success is a service's reply to this write. */
  confirms: Confirms;
  /** What someone else changed that we are about to write over. */
  conflicts(base: Customer, theirs: Customer): FieldConflict[];
};

/** PUT replaces exactly these (2.3). */
const REPLACED = ["name", "email"];

type ChangeOptions = {
  id: string;
  /** At least one field. PUT where only name and email are in it and both are known, else PATCH. */
  change: Change;
  /** Fields that an expectation looks at. */
  alsoRead?: readonly string[];
  /** The spelling of members that the server has not shown. */
  casing?: Casing;
  /** Asks the server to answer with the customer that the write made (RFC 7240). */
  representation?: boolean;
};

export type Casing = "lower" | "pascal";

export function changeIntent({
  id,
  change,
  alsoRead = [],
  casing = "lower",
  representation = false,
}: ChangeOptions): WriteIntent {
  const named = [...change.keys()].map((field) => field.toLowerCase());
  const replaces = named.every((field) => REPLACED.includes(field));
  const alsoNamed = alsoRead.map((field) => field.toLowerCase());
  // The id shows that the reply is of this customer.
  const needed = [...new Set(["id", ...(replaces ? REPLACED : named), ...alsoNamed])];
  return {
    // Others than the registry's can't be asked for, only found in the default set.
    fields: needed.every((field) => REGISTRY.includes(field)) ? needed : "whole",
    selfContained: !replaces || REPLACED.every((field) => named.includes(field)),
    fieldsAtLeast: [...named, ...alsoNamed],
    request(current, tag) {
      const changed = [...change].map(([field, value]): [string, Json] => [
        memberName(current.value, field, casing),
        value,
      ]);
      const kept = [...current.value].filter(([name]) => {
        const field = name.toLowerCase();
        return REPLACED.includes(field) && !named.includes(field);
      });
      // A replacement needs both; one that could not be read would be overwritten with a guess. So would one
      // of `name` and `Name` in one object. Name and email are strings (2.3): null is what a policy shows in
      // place of a value that it hides.
      const readable =
        kept.length + new Set(named).size === REPLACED.length &&
        kept.every(([, value]) => typeof value === "string");
      if (!replaces || !readable) return patchCustomer(id, tag, new Map(changed), representation);
      return replaceCustomer(id, tag, new Map([...kept, ...changed]), representation);
    },
    isUnchanged: (current) => hasValues(current.value, change),
    isAsWanted: (base, state) => state !== "gone" && hasReached(base.value, state.value, change),
    contradicts: (state) => !showsNoOtherText(state.value, change),
    confirms: confirmsChange(id, change),
    conflicts: (base, theirs) => conflictingFields(base.value, theirs.value, change),
  };
}

/** @param alsoRead fields that an expectation looks at, or "whole" for all that are readable. */
export function deletionIntent(id: string, alsoRead: readonly string[] | "whole"): WriteIntent {
  const byName = alsoRead !== "whole" && alsoRead.every((field) => REGISTRY.includes(field.toLowerCase()));
  return {
    fields: !byName ? "whole" : alsoRead.length === 0 ? undefined : ["id", ...alsoRead],
    fieldsAtLeast: !byName || alsoRead.length === 0 ? undefined : alsoRead,
    selfContained: true,
    request: (_, tag) => deleteCustomer(id, tag),
    isUnchanged: () => false,
    isAsWanted: (_, state) => state === "gone",
    contradicts: () => false,
    confirms: confirmsDeletion,
    conflicts: (base, theirs) => differingFields(base.value, theirs.value),
  };
}
