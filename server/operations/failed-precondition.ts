import { type Change, LISTED_CHANGES_MAX } from "../domain/change.ts";
import { formatEntityTag, parseEntityTag, type RowVersion } from "../domain/entity-tag.ts";
import type { MaybePromise } from "../domain/maybe-promise.ts";
import { type Diagnosis, EXPLANATIONS, type Preconditions } from "../domain/precondition.ts";
import { type Refusal, refuse } from "../domain/problem.ts";
import type { AuditStore } from "../storage/audit-store.ts";
import type { Authority, Call } from "./call.ts";
import { shownChange } from "./history.ts";
import { prefersChanges } from "./prefer.ts";

const SHOWN_CHARACTERS_MAX = 256;
/** The maximum number of changes among which the version in If-Match is looked for. */
const SEARCHED_CHANGES_MAX = 100;
/** A refusal waits no longer for the audit trail. */
const CHANGES_WAIT_MS = 250;

export type Trail = Pick<AuditStore, "history">;

type Failed = {
  readonly authority: Authority;
  readonly preconditions: Preconditions;
  readonly diagnosis: Diagnosis;
  /** The version stored now. */
  readonly current: RowVersion;
};

/**
 * The refusal of check 8. With `Prefer: changes` it says who changed the customer since the version in If-Match,
 * for callers who may see the history.
 *
 * @param id of the customer, as it is stored
 */
export function preconditionFailed(
  audit: Trail,
  { headers }: Pick<Call, "headers">,
  id: string,
  failed: Failed,
): MaybePromise<Refusal> {
  const { authority, preconditions } = failed;
  const sent = parseEntityTag(preconditions.ifMatch ?? "");
  const isWanted = sent !== null && authority.rights.operations.has("history");
  if (!isWanted || !prefersChanges(headers.get("prefer"))) return refusal(failed, null);
  return Promise.race([
    changesSince(audit, id, sent, failed).catch(() => null),
    Bun.sleep(CHANGES_WAIT_MS).then(() => null),
  ]).then((changes) => refusal(failed, changes));
}

function refusal({ preconditions, diagnosis, current }: Failed, changes: Changes | null): Refusal {
  const { ifMatch, ifNoneMatch } = preconditions;
  return refuse("precondition-failed", EXPLANATIONS[diagnosis], {
    extensions: {
      ...(ifMatch === null ? {} : { receivedIfMatch: ifMatch.slice(0, SHOWN_CHARACTERS_MAX) }),
      ...(ifNoneMatch === null ? {} : { receivedIfNoneMatch: ifNoneMatch.slice(0, SHOWN_CHARACTERS_MAX) }),
      diagnosis,
      ...changes,
    },
    headers: {
      etag: formatEntityTag(current),
      ...(changes === null ? {} : { "preference-applied": "changes" }),
    },
  });
}

type Changes = { readonly changes: Change[]; readonly moreChanges: boolean };

/**
 * Those from one version of a customer to another, the newest first. Null where the one is no version of this
 * customer, or is too long ago: the answer says of a tag no more than the history of the customer does.
 */
async function changesSince(
  audit: Trail,
  id: string,
  sent: RowVersion,
  { authority: { tenant, rights }, current }: Failed,
): Promise<Changes | null> {
  const { items } = await audit.history({
    tenant,
    customerId: id,
    before: null,
    limit: SEARCHED_CHANGES_MAX,
  });
  // The write after it names it also where retention has deleted its own row.
  const oldest = items.findIndex(({ versionBefore }) => versionBefore === sent);
  // Others may have written since the refusal, whose ETag ends the list.
  const newest = items.findIndex(({ versionAfter }) => versionAfter === current);
  if (newest === -1 || oldest < newest) return null;
  const all = items.slice(newest, oldest + 1);
  return {
    changes: all.slice(0, LISTED_CHANGES_MAX).map((entry) => shownChange(entry, rights.read)),
    moreChanges: all.length > LISTED_CHANGES_MAX,
  };
}
