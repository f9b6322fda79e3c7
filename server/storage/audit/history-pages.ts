import type { AuditEntry } from "../../domain/audit/audit-entry.ts";
import type { AuditStore, HistoryQuery } from "./audit-store.ts";

const PAGE_ROWS = 500;

/** The rows of one customer in the audit trail, the newest first. No more than a page of them is in memory. */
export async function* historyPages(
  audit: Pick<AuditStore, "history">,
  tenant: string,
  customerId: string,
): AsyncGenerator<readonly AuditEntry[]> {
  for (let before: string | null = null; ; ) {
    const query: HistoryQuery = { tenant, customerId, before, limit: PAGE_ROWS, withValues: true };
    const { items, last } = await audit.history(query);
    yield items;
    if (last === null) return;
    before = last;
  }
}
