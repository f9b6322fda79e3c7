import { foldEmail } from "../../domain/email.ts";
import type { RowVersion } from "../../domain/entity-tag.ts";
import type { Projection } from "../../domain/projection.ts";
import type { CustomerStore, Page, PageQuery, StoredCustomer } from "../customer-store.ts";
import type { WriteQueue } from "./commit/write-queue.ts";
import type { SharedRead } from "./read/read-transaction.ts";
import { type CustomerRow, columns, readRowVersion, stored } from "./statements/customer-rows.ts";
import type { Params } from "./statements/statement-cache.ts";

/** Customers in SQLite. Reads share one transaction a turn. Writes go through WriteQueue. */
export class SqliteCustomerStore implements CustomerStore {
  readonly cursorKey: Uint8Array;
  readonly #read: SharedRead;
  readonly #write: WriteQueue;

  constructor(cursorKey: Uint8Array, read: SharedRead, write: WriteQueue) {
    this.cursorKey = cursorKey;
    this.#read = read;
    this.#write = write;
  }

  read(tenant: string, id: string, projection: Projection): StoredCustomer | null {
    const sql = `SELECT ${columns(projection)} FROM customers WHERE tenant = ? AND id = ?`;
    const row = this.#read.get<CustomerRow>(sql, tenant, id);
    return row === null ? null : stored(row, projection);
  }

  rowVersion(tenant: string, id: string): RowVersion | null {
    return readRowVersion(this.#read, tenant, id);
  }

  page(query: PageQuery, projection: Projection): Page {
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
    // The id as the paging key goes under another name: it is in the body only where the projection has it.
    const sql = `SELECT ${columns(projection)}, id AS page_key FROM customers WHERE ${conditions.join(" AND ")} ORDER BY id LIMIT ?`;
    const rows = this.#read.all<CustomerRow & { page_key: string }>(sql, ...params, limit + 1);
    const items = rows.slice(0, limit).map((row) => stored(row, projection));
    return { items, lastId: rows.length > limit ? (rows[limit - 1]?.page_key ?? null) : null };
  }

  readonly create: CustomerStore["create"] = (tenant, customer, nowMs, key, origin) =>
    this.#write.run("createCustomer", { tenant, customer, nowMs, key, origin });

  readonly update: CustomerStore["update"] = (target, changes, projection, key, origin) =>
    this.#write.run("updateCustomer", { target, changes, projection, key, origin });

  readonly remove: CustomerStore["remove"] = (target, key, origin) =>
    this.#write.run("removeCustomer", { target, key, origin });

  readonly isKeyUsed: CustomerStore["isKeyUsed"] = ({ tokenId, key, nowMs }) => {
    const sql = "SELECT 1 FROM idempotency_keys WHERE token_id = ? AND key = ? AND expires_at > ?";
    return this.#read.get(sql, tokenId, key, nowMs) !== null;
  };

  purgeKeys(nowMs: number): Promise<number> {
    return this.#write.run("purgeKeys", { nowMs });
  }
}
