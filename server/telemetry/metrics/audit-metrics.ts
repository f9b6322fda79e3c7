import type { Registry } from "prom-client";
import type { RetentionProgress } from "../../storage/audit/audit-retention.ts";
import { scrapedCounter, scrapedGauge } from "./scraped-metric.ts";

/** @param progress of the retention of the audit trail; null where its rows are kept forever */
export function registerAuditMetrics(registry: Registry, progress: () => RetentionProgress | null): void {
  const deleted = {
    name: "customers_audit_rows_deleted_total",
    help: "Rows of the audit trail that AUDIT_RETENTION_DAYS deleted.",
  };
  scrapedCounter(registry, deleted, () => progress()?.rowsDeleted ?? 0);
  const completed = {
    name: "customers_audit_retention_completed_seconds",
    help: "When all old rows of the audit trail had been deleted last, in seconds since 1970; 0 where that never was, NaN without AUDIT_RETENTION_DAYS.",
  };
  scrapedGauge(registry, completed, () => (progress()?.completedAtMs ?? Number.NaN) / 1000);
}
