import type { CustomerFields } from "../../domain/customer/customer.ts";
import { foldEmail } from "../../domain/customer/email.ts";
import type { RowVersion } from "../../domain/entity-tag.ts";
import { pick } from "../../domain/pick.ts";
import { NO_BODY } from "../../domain/projection.ts";
import { type CustomerStore, PURGED_KEYS_MAX } from "../customers/customer-store.ts";
import type { Lanes } from "./connection/lanes.ts";
import type { BatchedReads } from "./reads/batched-reads.ts";
import { columns, readText } from "./rows/customer-sql.ts";
import { createOf, removeOf, updateOf } from "./writes/customer-kinds.ts";
import type { WriteBatches } from "./writes/write-batches.ts";

/** A row of the projection's columns. A missing customer has no version. */
type CustomerRow = CustomerFields & { readonly row_version: RowVersion | null };
type PageRow = CustomerFields & { readonly row_version: RowVersion; readonly page_key: string };

/** Customers in PostgreSQL. Reads and writes of an event-loop turn are batches: see reads/ and writes/. */
export function postgresCustomerStore(
  cursorKey: Uint8Array,
  lanes: Lanes,
  reads: BatchedReads,
  writes: WriteBatches,
) {
  const read: CustomerStore["read"] = async (tenant, id, projection) => {
    const row = await reads.find<CustomerRow>(readText(projection), [tenant, id]);
    if (row === null || row.row_version === null) return null;
    return { rowVersion: row.row_version, fields: pick(row, projection) };
  };
  return {
    cursorKey,
    read,
    rowVersion: async (tenant, id) => (await read(tenant, id, NO_BODY))?.rowVersion ?? null,

    async page(query, projection) {
      const { tenant, after, limit, status, email } = query;
      const conditions = ["c.tenant = $1"];
      const params = [tenant, String(limit + 1)];
      const where = (condition: string, value: string | null, type = "text"): void => {
        if (value === null) return;
        params.push(value);
        conditions.push(`${condition} $${params.length}::${type}`);
      };
      where("c.id >", after, "uuid");
      where("c.status =", status);
      where("c.email_folded =", email === null ? null : foldEmail(email));
      // The paging key has a name of its own: the projection decides whether `id` is in the body.
      const text = `SELECT ${columns("c", projection)}, c.id AS page_key FROM customers c
        WHERE ${conditions.join(" AND ")} ORDER BY c.id LIMIT $2::int`;
      const rows = await lanes.readPage<PageRow>(text, params);
      const items = rows
        .slice(0, limit)
        .map((row) => ({ rowVersion: row.row_version, fields: pick(row, projection) }));
      return { items, lastId: rows.length > limit ? (rows[limit - 1]?.page_key ?? null) : null };
    },

    create: (...creation) => writes.run(createOf(...creation)),
    update: (...update) => writes.run(updateOf(...update)),
    remove: (...removal) => writes.run(removeOf(...removal)),

    isKeyUsed: async ({ tokenId, key, nowMs }) => {
      const text =
        "SELECT 1 FROM idempotency_keys WHERE token_id = $1 AND key = $2 AND expires_at > $3::bigint";
      return (await lanes.run(text, [tokenId, key, String(nowMs)])).length > 0;
    },

    async purgeKeys(nowMs) {
      const text = `WITH expired AS MATERIALIZED (
          SELECT token_id, key FROM idempotency_keys WHERE expires_at <= $1::bigint
          ORDER BY expires_at LIMIT $2::int FOR UPDATE SKIP LOCKED)
        DELETE FROM idempotency_keys k USING expired e WHERE k.token_id = e.token_id AND k.key = e.key RETURNING 1`;
      return (await lanes.run(text, [String(nowMs), String(PURGED_KEYS_MAX)])).length;
    },
  } satisfies CustomerStore;
}
