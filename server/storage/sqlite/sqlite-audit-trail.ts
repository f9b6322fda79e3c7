import { AUDIT_TENANTS, type AuditRow, chainedEntry } from "../audit/audit-row.ts";
import type { AuditStore } from "../audit/audit-store.ts";
import { countBrokenLinks } from "./audit-links.ts";
import type { WriteQueue } from "./commit/write-queue.ts";
import type { SharedRead } from "./read/read-transaction.ts";
import { chainStart, SELECT_AUDIT, SELECT_AUDIT_ALONE, WITH_CHANGES } from "./statements/audit-rows.ts";
import { isErased } from "./statements/erasure.ts";

/** The audit trail in SQLite. Each write gives its row a place at once: see statements/audit-rows.ts. */
export function sqliteAuditTrail(read: SharedRead, write: WriteQueue) {
  return {
    isSealedLater: false,
    seal: async () => 0,
    tenants: () => read.all<{ tenant: string }>(AUDIT_TENANTS).map(({ tenant }) => tenant),
    chainStart: (tenant) => chainStart(read, tenant),
    moveStart: (start, last) => write.run("moveChainStart", { start, last }),
    hadCustomers: (tenant) => read.get("SELECT 1 FROM tenants WHERE tenant = ?", tenant) !== null,
    isErased: (tenant, customerId) => isErased(read, tenant, customerId),

    countStrayValues(tenant) {
      const sql = `SELECT count(*) AS n FROM audit_values v WHERE tenant = ? AND NOT EXISTS (
        SELECT 1 FROM audit a WHERE a.tenant = v.tenant AND a.number = v.number)`;
      return read.get<{ n: number }>(sql, tenant)?.n ?? 0;
    },

    countBrokenLinks: (tenant) => countBrokenLinks(read, tenant),

    history({ tenant, customerId, before, limit, withValues }) {
      const select = withValues ? SELECT_AUDIT : SELECT_AUDIT_ALONE;
      const sql = `${WITH_CHANGES} ${select} WHERE a.tenant = ?1 AND a.number IN (SELECT number FROM change) ORDER BY a.number DESC`;
      const rows = read.all<AuditRow>(
        sql,
        tenant,
        customerId,
        before === null ? null : Number(before),
        limit + 1,
      );
      const last = rows.length > limit ? String(rows[limit - 1]?.number) : null;
      return { items: rows.slice(0, limit).map(chainedEntry), last };
    },

    rows({ tenant, after, limit }) {
      const sql = `${SELECT_AUDIT} WHERE a.tenant = ? AND a.number >= coalesce(? + 1, -9223372036854775808)
        ORDER BY a.number LIMIT ?`;
      return read.all<AuditRow>(sql, tenant, after, limit).map(chainedEntry);
    },

    search({ tenant, customerId, client, fromMs, untilMs, after, limit }) {
      const part = "SELECT number FROM audit WHERE tenant = ? AND number > ? ORDER BY number LIMIT ?";
      const sql = `SELECT max(number) AS last FROM (${part})`;
      const last = read.get<{ last: number | null }>(sql, tenant, after, limit)?.last ?? null;
      if (last === null) return { rows: [], last: null };
      const filters = [
        ["a.customer_id = ?", customerId],
        ["a.client = ?", client],
      ].filter(([, value]) => value !== null);
      const select = `${SELECT_AUDIT} WHERE a.tenant = ? AND a.number > ? AND a.number <= ? AND a.time >= ? AND a.time < ?
        ${filters.map(([filter]) => `AND ${filter}`).join(" ")} ORDER BY a.number`;
      const params = [tenant, after, last, fromMs, untilMs, ...filters.map(([, value = null]) => value)];
      return { rows: read.all<AuditRow>(select, ...params).map(chainedEntry), last };
    },
  } satisfies AuditStore;
}
