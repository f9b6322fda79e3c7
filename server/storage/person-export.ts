import type { AuditEntry } from "../domain/audit/audit-entry.ts";
import { changedValues } from "../domain/audit/kept-values.ts";
import type { FoundCustomer } from "./person-search.ts";
import type { Storage } from "./storage.ts";

const PAGE_ROWS = 500;

/**
 * All that is stored of a customer, for the person itself: it names no tokens, and no requests. Times are in UTC.
 */
export async function exportCustomer(
  { persons, audit }: Pick<Storage, "persons" | "audit">,
  { tenant, id, state }: FoundCustomer,
): Promise<Record<string, unknown>> {
  const record = await persons.record(tenant, id);
  const entries: AuditEntry[] = [];
  for (let before: string | null = null; ; ) {
    const page = await audit.history({ tenant, customerId: id, before, limit: PAGE_ROWS });
    entries.push(...page.items);
    before = page.last;
    if (before === null) break;
  }
  const replies = await persons.keptReplies(tenant, id);
  return {
    tenant,
    id,
    state,
    customer:
      record === null
        ? null
        : {
            ...{ id: record.id, name: record.name, email: record.email, status: record.status },
            ...{ version: record.rowVersion, createdAt: isoTime(record.createdAtMs) },
          },
    history: entries.toReversed().map(entryOf),
    keptReplies: replies.map(({ expiresAtMs, fields }) => ({ keptUntil: isoTime(expiresAtMs), fields })),
  };
}

function entryOf(entry: AuditEntry): Record<string, unknown> {
  return {
    time: isoTime(entry.timeMs),
    client: entry.client,
    operation: entry.operation,
    changed: entry.changed,
    versionBefore: entry.versionBefore,
    versionAfter: entry.versionAfter,
    values: entry.values === null ? null : changedValues(entry.values),
  };
}

function isoTime(ms: number): string {
  return new Date(ms).toISOString();
}
