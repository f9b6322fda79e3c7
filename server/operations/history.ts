import type { AuditEntry } from "../domain/audit/audit-entry.ts";
import { changedValues } from "../domain/audit/kept-values.ts";
import type { Change, ChangedValues, NamedChange } from "../domain/customer/change.ts";
import { parseCustomerId } from "../domain/customer/customer-id.ts";
import { FIELD_NAMES, type FieldName } from "../domain/customer/field-registry.ts";
import { formatEntityTag, type RowVersion } from "../domain/entity-tag.ts";
import { flatMap, ok, type Result } from "../domain/problem.ts";
import { isoTime } from "../domain/text/iso-time.ts";
import type { AuditStore } from "../storage/audit/audit-store.ts";
import type { CustomerStore } from "../storage/customers/customer-store.ts";
import type { Call } from "./call.ts";
import { customerNotFound, requireOperation } from "./checks.ts";
import { decryptCursor, encryptCursor } from "./request/page-cursor.ts";
import { invalidParameter, parseLimit, readQuery, singleValue } from "./request/query.ts";

export type HistoryPage = {
  /** The newest first. They name only fields that the caller may read. */
  readonly items: readonly Change[];
  /** The cursor of the next page, or null after the last. */
  readonly next: string | null;
};

export type HistoryStores = {
  readonly customers: Pick<CustomerStore, "cursorKey" | "rowVersion">;
  readonly audit: Pick<AuditStore, "history">;
};

/** GET /customers/{id}/history: who wrote a customer, also after it was deleted. */
export async function history(
  { customers, audit }: HistoryStores,
  call: Call,
  id: string,
): Promise<Result<HistoryPage>> {
  const { tenant, rights } = call.authority;
  const permitted = requireOperation(call.authority, "history");
  if (!permitted.ok) return permitted;
  const query = readQuery(call.search, ["limit", "cursor"]);
  if (!query.ok) return query;
  const limit = flatMap(singleValue(query.value, "limit"), parseLimit);
  if (!limit.ok) return limit;
  const cursor = singleValue(query.value, "cursor");
  if (!cursor.ok) return cursor;
  const storedId = parseCustomerId(id);
  const filter = ["history", tenant, storedId];
  const { cursorKey } = customers;
  const before = cursor.value === null ? null : decryptCursor(cursorKey, cursor.value, filter);
  if (cursor.value !== null && before === null) {
    return invalidParameter("cursor", "was not made by this service for this customer; start without it");
  }
  if (storedId === null) return customerNotFound();
  const page = { tenant, customerId: storedId, before, limit: limit.value };
  const found = await audit.history({ ...page, withValues: true });
  const isUnknown = found.items.length === 0 && (await customers.rowVersion(tenant, storedId)) === null;
  if (isUnknown) return customerNotFound();
  const items = found.items.map((entry) => shownChange(entry, rights.read));
  return ok({ items, next: found.last === null ? null : encryptCursor(cursorKey, found.last, filter) });
}

/** An entry of the audit trail, without the fields that the caller may not read. */
export function namedChange(entry: AuditEntry, readable: ReadonlySet<FieldName>): NamedChange {
  return {
    time: isoTime(entry.timeMs),
    client: entry.client,
    operation: entry.operation,
    changed: entry.changed.filter((name) => readable.has(name)),
    requestId: entry.requestId,
    etag: tagOf(entry.versionAfter),
    previousEtag: tagOf(entry.versionBefore),
    withoutIfMatch: entry.isWithoutIfMatch,
  };
}

function shownChange(entry: AuditEntry, readable: ReadonlySet<FieldName>): Change {
  const values = entry.values === null ? null : readableValues(changedValues(entry.values, entry), readable);
  return { ...namedChange(entry, readable), values };
}

/** Null where none is left, as for a write that changed no value: nobody may learn which of the two it was. */
function readableValues(values: ChangedValues, readable: ReadonlySet<FieldName>): ChangedValues | null {
  const shown = FIELD_NAMES.flatMap((name) =>
    readable.has(name) && values[name] !== undefined ? [[name, values[name]]] : [],
  );
  return shown.length === 0 ? null : Object.fromEntries(shown);
}

function tagOf(version: RowVersion | null): string | null {
  return version === null ? null : formatEntityTag(version);
}
