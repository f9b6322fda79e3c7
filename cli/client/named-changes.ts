/** Who changed a customer since the version that a refused write named: an addition of this project's service. */
import { parseJsonOrUndefined } from "./customer.ts";
import { entryOrUndefined, type HistoryEntry, historyEntry } from "./customer-history.ts";
import { isJsonArray, isJsonObject, type Json } from "./json.ts";
import type { Reply } from "./wire/reply.ts";

/** It names fields; their values are in the history alone. */
export type NamedChange = Omit<HistoryEntry, "values">;

export type NamedChanges = {
  /** The newest first. */
  readonly changes: readonly NamedChange[];
  /** There were older ones that are not in `changes`. */
  readonly moreChanges: boolean;
};

export const NO_CHANGES: NamedChanges = { changes: [], moreChanges: false };

/** Kept of all refusals of one write. */
const CHANGES_MAX = 100;

/**
 * Those before it, and those that this reply names since.
 *
 * @param ownId the request id of our own writes: one that arrived late is not someone else's
 */
export function withChangesOf(reply: Reply, before: NamedChanges, ownId: string | undefined): NamedChanges {
  const body = reply.kind === "complete" ? parseJsonOrUndefined(reply.text) : undefined;
  const items = isJsonObject(body) ? body.get("changes") : undefined;
  if (!isJsonObject(body) || !isJsonArray<Json>(items)) return before;
  const entries = items
    .flatMap((item) => (isJsonObject(item) ? (entryOrUndefined(item) ?? []) : []))
    .map(historyEntry)
    .map(({ values: _, ...change }): NamedChange => change)
    .filter(({ requestId }) => ownId === undefined || requestId !== ownId);
  // A second refusal of one tag, after a reading that a cache answered, names those of the first again.
  const tags = new Set(entries.map(({ etag }) => etag));
  const all = [...entries, ...before.changes.filter(({ etag }) => etag === null || !tags.has(etag))];
  return {
    changes: all.slice(0, CHANGES_MAX),
    moreChanges: before.moreChanges || body.get("moreChanges") === true || all.length > CHANGES_MAX,
  };
}
