import type { SharedRead } from "./read/read-transaction.ts";
import { chainStart } from "./statements/audit-rows.ts";

const PAGE_ROWS = 10_000;

/**
 * Looks at the links by which the rows of each customer are found: see files/schema.ts. Services may write meanwhile.
 *
 * @returns how many rows and customers of a tenant name another row than the one before them, or the last one
 */
export function countBrokenLinks(read: SharedRead, tenant: string): number {
  const newest = new Map<string, number>();
  let [broken, end] = [0, 0];
  const rows =
    "SELECT number, customer_id, previous FROM audit WHERE tenant = ? AND number > ? ORDER BY number LIMIT ?";
  type Row = { readonly number: number; readonly customer_id: string; readonly previous: number };
  for (let page: Row[] | null = null; page === null || page.length === PAGE_ROWS; ) {
    page = read.all<Row>(rows, tenant, end, PAGE_ROWS);
    const start = chainStart(read, tenant).number;
    for (const { number, customer_id, previous } of page) {
      const before = newest.get(customer_id);
      // Retention may have deleted the row before.
      if (before === undefined ? previous > start : previous !== before) broken += 1;
      newest.set(customer_id, number);
      end = number;
    }
  }
  const customers = "SELECT id, last_change FROM customers WHERE tenant = ? AND id > ? ORDER BY id LIMIT ?";
  const isOwn = "SELECT 1 FROM audit WHERE tenant = ? AND number = ? AND customer_id = ?";
  type Customer = { readonly id: string; readonly last_change: number };
  for (
    let [page, after]: [Customer[] | null, string] = [null, ""];
    page === null || page.length === PAGE_ROWS;
  ) {
    page = read.all<Customer>(customers, tenant, after, PAGE_ROWS);
    for (const { id, last_change } of page) {
      const number = newest.get(id) ?? 0;
      const isWrittenSince = last_change > end && read.get(isOwn, tenant, last_change, id) !== null;
      if (number > 0 && last_change !== number && !isWrittenSince) broken += 1;
      after = id;
    }
  }
  return broken;
}
