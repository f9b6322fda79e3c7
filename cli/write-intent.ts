/** What a conditional write is for: the request for a state, and when a state is as wanted. Pure. */
import { type Failure, failure } from "./failure.ts";
import type { Json } from "./json.ts";
import { type Customer, memberName, memberNamed } from "./representation.ts";
import { type ApiRequest, deleteCustomer, patchCustomer, replaceCustomer } from "./requests.ts";
import {
  type Change,
  conflictingFields,
  differingFields,
  type FieldConflict,
  hasValues,
  looksWritten,
} from "./three-way-merge.ts";

export type WriteIntent = {
  /** "updated", "deleted": as in "customer X was not updated". */
  done: string;
  /** Fields that the reads ask for; undefined for the server's default set. */
  fields: readonly string[] | undefined;
  /** The write for this state, with this tag as its condition. */
  request(current: Customer, tag: string): ApiRequest | Failure;
  /** True where the request says all by itself, so that a state which is not the tag's can't leak into it. */
  selfContained: boolean;
  /** Nothing would have to be sent. */
  isUnchanged(current: Customer): boolean;
  /** The state that our own write leaves behind; "gone" after a 404. */
  isAsWanted(state: Customer | "gone"): boolean;
  /** What someone else changed that we are about to write over. */
  conflicts(base: Customer, theirs: Customer): FieldConflict[];
};

/** The fields of the specification (2.2): others can't be asked for, only found in the default set. */
const REGISTRY = ["id", "name", "email", "status"];
/** PUT replaces exactly these (2.3). */
const REPLACED = ["name", "email"];

/**
 * @param change at least one field. PUT where only name and email are in it, else PATCH.
 * @param alsoRead fields that --expect looks at.
 */
export function changeIntent(
  id: string,
  change: Change,
  alsoRead: readonly string[],
  casing: "lower" | "pascal",
): WriteIntent {
  const named = [...change.keys()].map((field) => field.toLowerCase());
  const replaces = named.every((field) => REPLACED.includes(field));
  const needed = [
    ...new Set([...(replaces ? REPLACED : named), ...alsoRead.map((field) => field.toLowerCase())]),
  ];
  return {
    done: "updated",
    fields: needed.every((field) => REGISTRY.includes(field)) ? needed : undefined,
    selfContained: !replaces || REPLACED.every((field) => named.includes(field)),
    request(current, tag) {
      const changed = [...change].map(([field, value]): [string, Json] => [
        memberName(current.value, field, casing),
        value,
      ]);
      if (!replaces) return patchCustomer(id, tag, new Map(changed));
      const kept: [string, Json][] = [];
      for (const field of REPLACED.filter((name) => !named.includes(name))) {
        const member = memberNamed(current.value, field);
        if (member === undefined) return unreadable(id, field);
        kept.push([member.name, member.value]);
      }
      return replaceCustomer(id, tag, new Map([...kept, ...changed]));
    },
    isUnchanged: (current) => hasValues(current.value, change),
    isAsWanted: (state) => state !== "gone" && looksWritten(state.value, change),
    conflicts: (base, theirs) => conflictingFields(base.value, theirs.value, change),
  };
}

export function deletionIntent(id: string, alsoRead: readonly string[]): WriteIntent {
  const inRegistry = alsoRead.every((field) => REGISTRY.includes(field.toLowerCase()));
  return {
    done: "deleted",
    fields: alsoRead.length > 0 && inRegistry ? alsoRead : undefined,
    selfContained: true,
    request: (_, tag) => deleteCustomer(id, tag),
    isUnchanged: () => false,
    isAsWanted: (state) => state === "gone",
    conflicts: (base, theirs) => differingFields(base.value, theirs.value),
  };
}

/** PUT needs both fields, and sending one that we did not read would overwrite it with a guess. */
function unreadable(id: string, field: string): Failure {
  return failure(
    "not-allowed",
    `customer ${id} was not updated: a replacement needs its ${field}, and the server does not show it to these credentials`,
    `Give --${field} too, or use credentials that may read it.`,
  );
}
