/** Who changed a customer since the version that a refused write named: an addition of this project's service. */
import { parseJsonOrUndefined } from "./customer.ts";
import { entryOrUndefined, type HistoryEntry, historyEntry } from "./customer-history.ts";
import { isJsonArray, isJsonObject, type Json } from "./json.ts";
import type { Reply } from "./wire/reply.ts";

export type NamedChanges = {
  /** The newest first. */
  readonly changes: readonly HistoryEntry[];
  /** There were older ones that are not in `changes`. */
  readonly moreChanges: boolean;
};

export const NO_CHANGES: NamedChanges = { changes: [], moreChanges: false };

/** Kept of all refusals of one write. */
const CHANGES_MAX = 100;

/** Those before it, and those that this reply names since. */
export function withChangesOf(reply: Reply, before: NamedChanges): NamedChanges {
  const body = reply.kind === "complete" ? parseJsonOrUndefined(reply.text) : undefined;
  const named = isJsonObject(body) ? body.get("changes") : undefined;
  if (!isJsonObject(body) || !isJsonArray<Json>(named)) return before;
  const entries = named.flatMap((item) => (isJsonObject(item) ? (entryOrUndefined(item) ?? []) : []));
  const all = [...entries.map(historyEntry), ...before.changes];
  return {
    changes: all.slice(0, CHANGES_MAX),
    moreChanges: before.moreChanges || body.get("moreChanges") === true || all.length > CHANGES_MAX,
  };
}
