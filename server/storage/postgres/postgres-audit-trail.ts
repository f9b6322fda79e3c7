import { CHAIN_START } from "../../domain/audit/audit-chain.ts";
import { AUDIT_TENANTS, auditEntry, chainedEntry } from "../audit/audit-row.ts";
import type { AuditStore } from "../audit/audit-store.ts";
import { sealRows } from "./audit-sealing.ts";
import type { Lanes } from "./connection/lanes.ts";
import {
  auditPartText,
  auditSearchText,
  IS_ERASED_TEXT,
  type PostgresAuditRow,
  SELECT_AUDIT,
  SELECT_AUDIT_ALONE,
} from "./rows/audit-sql.ts";

/** The audit trail in PostgreSQL, on a connection for what is slow. Rows are appended by rows/customer-sql.ts. */
export function postgresAuditTrail(lanes: Lanes) {
  return {
    isSealedLater: true,

    seal(isWaiting = false) {
      // Safe to repeat: it then finds fewer rows without a place.
      return lanes.transact((transaction) => sealRows(transaction, isWaiting));
    },

    async tenants() {
      const rows = await lanes.run<{ tenant: string }>(AUDIT_TENANTS, []);
      return rows.map(({ tenant }) => tenant);
    },

    async chainStart(tenant) {
      type Row = { readonly number: string; readonly hash: string; readonly time: string };
      const text =
        "SELECT number, encode(hash, 'hex') AS hash, time FROM audit_anchors WHERE tenant = $1::text";
      const [row] = await lanes.run<Row>(text, [tenant]);
      if (row === undefined) return { ...CHAIN_START, timeMs: null };
      return { number: Number(row.number), hash: row.hash, timeMs: Number(row.time) };
    },

    moveStart(start, { tenant, number, hash, timeMs }) {
      // Safe to repeat: it then finds the start moved.
      return lanes.transact(async (transaction) => {
        const moved = await transaction.run(
          `INSERT INTO audit_anchors AS a (tenant, number, hash, time)
            VALUES ($1::text, $2::bigint, decode($3::text, 'hex'), $4::bigint)
            ON CONFLICT (tenant) DO UPDATE SET number = excluded.number, hash = excluded.hash, time = excluded.time
            WHERE a.number = $5::bigint RETURNING 1`,
          [tenant, String(number), hash, String(timeMs), String(start.number)],
        );
        if (moved.length === 0) return false;
        // Retention leaves no row before the start. One that is there stays, so that `audit verify` finds it.
        await transaction.run(
          "DELETE FROM audit WHERE tenant = $1::text AND number > $2::bigint AND number <= $3::bigint",
          [tenant, String(start.number), String(number)],
        );
        return true;
      });
    },

    async hadCustomers(tenant) {
      const text = "SELECT 1 FROM tenants WHERE tenant = $1::text";
      return (await lanes.run(text, [tenant])).length > 0;
    },

    isErased: async (tenant, customerId) =>
      (await lanes.run(IS_ERASED_TEXT, [tenant, customerId])).length > 0,

    /** The server enforces the foreign key for every writer. */
    countStrayValues: () => 0,
    countBrokenLinks: () => 0,

    async history({ tenant, customerId, before, limit, withValues }) {
      const isUnsealed = before?.startsWith(UNSEALED) === true;
      const start = before === null ? [] : [isUnsealed ? before.slice(UNSEALED.length) : before];
      const end = isUnsealed
        ? "$4::bigint"
        : "(SELECT id FROM audit WHERE tenant = $1::text AND number = $4::bigint)";
      const text = `${withValues ? SELECT_AUDIT : SELECT_AUDIT_ALONE}
        WHERE a.tenant = $1::text AND a.customer_id = $2::uuid ${before === null ? "" : `AND a.id < ${end}`}
        ORDER BY a.id DESC LIMIT $3::int`;
      const params = [tenant, customerId, String(limit + 1), ...start];
      const rows = await lanes.readPage<PostgresAuditRow>(text, params);
      const last = rows.length > limit ? rows[limit - 1] : undefined;
      return {
        items: rows.slice(0, limit).map(auditEntry),
        last: last === undefined ? null : positionOf(last),
      };
    },

    async rows({ tenant, after, limit }) {
      const text = `${SELECT_AUDIT} WHERE a.tenant = $1::text
        AND a.number >= coalesce($2::bigint + 1, -9223372036854775808) ORDER BY a.number LIMIT $3::int`;
      const params = [tenant, after === null ? null : String(after), String(limit)];
      const rows = await lanes.run<PostgresAuditRow>(text, params);
      return rows.map(chainedEntry);
    },

    async search(query) {
      const { tenant, customerId, client, fromMs, untilMs, after, limit } = query;
      const one = customerId === null ? [] : [customerId];
      const scope = { isOneCustomer: one.length > 0 };
      const part = [tenant, String(after), String(limit), ...one];
      const [{ last } = { last: null }] = await lanes.run<{ last: string | null }>(
        auditPartText(scope),
        part,
      );
      if (last === null) return { rows: [], last: null };
      const params = [tenant, String(after), last, String(fromMs), String(untilMs), client, ...one];
      const rows = await lanes.run<PostgresAuditRow>(auditSearchText(scope), params);
      return { rows: rows.map(chainedEntry), last: Number(last) };
    },
  } satisfies AuditStore;
}

/** Before the id of a row that has no number yet. */
const UNSEALED = "id ";

/** Its number, which a copy keeps, where it has one: then a cursor is good after a move to another engine. */
function positionOf({ number, id }: PostgresAuditRow): string {
  return number ?? `${UNSEALED}${id}`;
}
