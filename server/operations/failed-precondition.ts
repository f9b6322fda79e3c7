import type { AuditEntry } from "../domain/audit/audit-entry.ts";
import { LISTED_CHANGES_MAX, type NamedChange } from "../domain/customer/change.ts";
import type { FieldName } from "../domain/customer/field-registry.ts";
import { formatEntityTag, parseEntityTag, type RowVersion } from "../domain/entity-tag.ts";
import type { MaybePromise } from "../domain/maybe-promise.ts";
import { type Diagnosis, EXPLANATIONS, type Preconditions } from "../domain/precondition.ts";
import { type Refusal, refuse } from "../domain/problem.ts";
import type { HistoryQuery } from "../storage/audit/audit-store.ts";
import type { Authority, Call } from "./call.ts";
import { namedChange } from "./history.ts";
import type { History, RefusalTrail } from "./refusal-trail.ts";
import { prefersChanges } from "./request/prefer.ts";

const SHOWN_CHARACTERS_MAX = 256;
/** The maximum number of changes among which the version in If-Match is looked for. */
const SEARCHED_CHANGES_MAX = 100;
/** How many are read at first: most clients missed one or two. */
const FIRST_CHANGES = LISTED_CHANGES_MAX + 1;

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
  trail: RefusalTrail,
  { headers }: Pick<Call, "headers">,
  id: string,
  failed: Failed,
): MaybePromise<Refusal> {
  const { authority, preconditions } = failed;
  const sent = parseEntityTag(preconditions.ifMatch ?? "");
  const isWanted = sent !== null && authority.rights.operations.has("history");
  if (!isWanted || !prefersChanges(headers.get("prefer"))) return refusal(failed, null);
  return trail
    .find((audit) => changesSince(audit, id, sent, failed))
    .then((changes) => refusal(failed, changes));
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

type Changes = { readonly changes: NamedChange[]; readonly moreChanges: boolean };

/**
 * Those from one version of a customer to another, the newest first. Null where the one is no version of this
 * customer, or is too long ago: the answer says of a tag no more than the history of the customer does.
 */
async function changesSince(
  audit: History,
  id: string,
  sent: RowVersion,
  { authority: { tenant, rights }, current }: Failed,
): Promise<Changes | null> {
  const entries: AuditEntry[] = [];
  let before: string | null = null;
  for (const limit of [FIRST_CHANGES, SEARCHED_CHANGES_MAX - FIRST_CHANGES]) {
    const query: HistoryQuery = { tenant, customerId: id, before, limit, withValues: false };
    const page = await audit.history(query);
    entries.push(...page.items);
    // The write after it names it also where retention has deleted its own row.
    const oldest = entries.findIndex(({ versionBefore }) => versionBefore === sent);
    if (oldest !== -1) return changesFrom(entries.slice(0, oldest + 1), current, rights.read);
    if (page.last === null) return null;
    before = page.last;
  }
  return null;
}

function changesFrom(
  entries: readonly AuditEntry[],
  current: RowVersion,
  readable: ReadonlySet<FieldName>,
): Changes | null {
  // Others may have written since the refusal, whose ETag ends the list.
  const newest = entries.findIndex(({ versionAfter }) => versionAfter === current);
  if (newest === -1) return null;
  const all = entries.slice(newest);
  return {
    changes: all.slice(0, LISTED_CHANGES_MAX).map((entry) => namedChange(entry, readable)),
    moreChanges: all.length > LISTED_CHANGES_MAX,
  };
}
