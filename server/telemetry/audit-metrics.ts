import type { Registry } from "prom-client";
import Counter from "prom-client/lib/counter.js";
import Gauge from "prom-client/lib/gauge.js";
import type { RetentionProgress } from "../storage/audit-retention.ts";

/** @param progress of the retention of the audit trail; null where its rows are kept forever */
export function registerAuditMetrics(registry: Registry, progress: () => RetentionProgress | null): void {
  const registers = [registry];
  new Counter({
    name: "customers_audit_rows_deleted_total",
    help: "Rows of the audit trail that AUDIT_RETENTION_DAYS deleted.",
    registers,
    collect() {
      this.reset();
      this.inc(progress()?.rowsDeleted ?? 0);
    },
  });
  new Gauge({
    name: "customers_audit_retention_completed_seconds",
    help: "When all old rows of the audit trail had been deleted last, in seconds since 1970; 0 where that never was, NaN without AUDIT_RETENTION_DAYS.",
    registers,
    collect() {
      this.set((progress()?.completedAtMs ?? Number.NaN) / 1000);
    },
  });
}
