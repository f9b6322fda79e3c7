import { foldEmail } from "../../domain/customer/email.ts";
import type { CustomerStore } from "../customers/customer-store.ts";
import type { WriteQueue } from "./commit/write-queue.ts";
import type { SharedRead } from "./read/read-transaction.ts";
import { type CustomerRow, columns, readRowVersion, stored } from "./statements/customer-rows.ts";
import type { Params } from "./statements/statement-cache.ts";

/** Customers in SQLite. Reads share one transaction a turn. Writes go through WriteQueue. */
export function sqliteCustomerStore(cursorKey: Uint8Array, read: SharedRead, write: WriteQueue) {
  return {
    cursorKey,

    read(tenant, id, projection) {
      const sql = `SELECT ${columns(projection)} FROM customers WHERE tenant = ? AND id = ?`;
      const row = read.get<CustomerRow>(sql, tenant, id);
      return row === null ? null : stored(row, projection);
    },

    rowVersion: (tenant, id) => readRowVersion(read, tenant, id),

    page(query, projection) {
      const { tenant, after, limit, status, email } = query;
      const conditions = ["tenant = ?"];
      const params: Params = [tenant];
      const where = (condition: string, value: string | null): void => {
        if (value === null) return;
        conditions.push(condition);
        params.push(value);
      };
      where("id > ?", after);
      where("status = ?", status);
      where("email_folded = ?", email === null ? null : foldEmail(email));
      // The paging key has a name of its own: the projection decides whether `id` is in the body.
      const sql = `SELECT ${columns(projection)}, id AS page_key FROM customers WHERE ${conditions.join(" AND ")} ORDER BY id LIMIT ?`;
      const rows = read.all<CustomerRow & { page_key: string }>(sql, ...params, limit + 1);
      const items = rows.slice(0, limit).map((row) => stored(row, projection));
      return { items, lastId: rows.length > limit ? (rows[limit - 1]?.page_key ?? null) : null };
    },

    create: (tenant, customer, nowMs, key, origin) =>
      write.run("createCustomer", { tenant, customer, nowMs, key, origin }),

    update: (target, changes, projection, key, origin) =>
      write.run("updateCustomer", { target, changes, projection, key, origin }),

    remove: (target, key, origin) => write.run("removeCustomer", { target, key, origin }),

    isKeyUsed: ({ tokenId, key, nowMs }) => {
      const sql = "SELECT 1 FROM idempotency_keys WHERE token_id = ? AND key = ? AND expires_at > ?";
      return read.get(sql, tokenId, key, nowMs) !== null;
    },

    purgeKeys: (nowMs) => write.run("purgeKeys", { nowMs }),
  } satisfies CustomerStore;
}
